"""How a method looks, everywhere: one color, dash and marker per name, safe for color-blind eyes and gray print."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any, Literal, NamedTuple, cast

import matplotlib as mpl

from vcpo_bench.analysis.method_text import base_name
from vcpo_bench.reports.plots.letters import SANS, Letters

INK = "#010203"
"""Text, axes and the uncorrected method: nearly black. The page turns exactly this value into its own text color."""

GRID = "#d0d0d1"
"""Grid lines; the page turns exactly this value into its own."""

OKABE_ITO = {
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "purple": "#CC79A7",
}
"""The palette of Okabe and Ito (2008) less its black (that is `INK`) and its yellow (too pale for a line)."""

MORE_COLORS = ("#332288", "#882255", "#999933", "#117733", "#AA4499", "#661100", "#6699CC", "#888888")
"""Of the palette that Paul Tol calls muted: for methods without a fixed style, beside the six above."""

Dash = Literal["solid"] | tuple[float, tuple[float, ...]]

DASHES: tuple[Dash, ...] = ("solid", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (8, 2, 2, 2, 2, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")


class LineStyle(NamedTuple):
    """Color (hex), dash (matplotlib line style) and marker of one method."""

    color: str
    dash: Dash
    marker: str


_FIXED: dict[str, LineStyle] = {
    "runs that survived": LineStyle("#7f7f7f", DASHES[0], "."),
    "reinforce": LineStyle(INK, DASHES[2], "X"),
    "vcpo": LineStyle(OKABE_ITO["blue"], DASHES[0], "o"),
    "vcpo(baseline=group)": LineStyle(OKABE_ITO["blue"], DASHES[1], "P"),
    "vcpo(ess=off)": LineStyle(OKABE_ITO["blue"], DASHES[2], "v"),
    "vcpo(ess=off)+lr-matched": LineStyle(OKABE_ITO["blue"], DASHES[4], "X"),
    "vcpo(variant=released)": LineStyle(OKABE_ITO["blue"], DASHES[3], "p"),
    "vespo": LineStyle(OKABE_ITO["vermillion"], DASHES[1], "s"),
    "gspo": LineStyle(OKABE_ITO["green"], DASHES[3], "^"),
    "clip": LineStyle(OKABE_ITO["orange"], DASHES[0], "D"),
    "clip-higher": LineStyle(OKABE_ITO["orange"], DASHES[1], "<"),
    "tis": LineStyle(OKABE_ITO["purple"], DASHES[2], "v"),
    "token-tis": LineStyle(OKABE_ITO["sky"], DASHES[0], ">"),
    "mis": LineStyle(OKABE_ITO["sky"], DASHES[3], "P"),
}

_APART: dict[str, str] = {
    "gspo-token": "'",
    "m2-mask": "'",
    "pnpo": "'",
    "positive-only": "'",
    "prime-rl": "'",
    "psis": "'",
    "sampo": "'",
    "two-sided": "'''''",
    "veto": "''",
}
"""Appended to names of the catalog before they are hashed, where two would look the same."""

_SIGNALS: dict[str, LineStyle] = {
    "ess": LineStyle(INK, DASHES[0], "o"),
    "max_weight": LineStyle(OKABE_ITO["blue"], DASHES[1], "s"),
    "kl_length": LineStyle(OKABE_ITO["vermillion"], DASHES[3], "^"),
    "grad_norm": LineStyle("#332288", DASHES[4], "D"),
    "grad_norm_z": LineStyle(OKABE_ITO["sky"], DASHES[3], "P"),
    "head_norm": LineStyle(OKABE_ITO["green"], DASHES[2], "X"),
    "grad_cosine": LineStyle(OKABE_ITO["orange"], DASHES[0], ">"),
    "entropy_low": LineStyle("#999933", DASHES[1], "<"),
    "reward_drop": LineStyle("#882255", DASHES[3], "p"),
    "lr": LineStyle("#888888", DASHES[0], "s"),
}
"""Signals of `analysis.monitoring.signals`, which share a figure, and its legend, with other signals only. No two have
one color, or one dash and marker. `tis` is a method as well and looks like it."""


SURVIVORS = "runs that survived"
"""Name of the reference line that is drawn beside the methods where failed runs are compared with the others."""


LAG_STYLES: tuple[LineStyle, ...] = tuple(
    LineStyle(color, DASHES[place % len(DASHES)], MARKERS[place])
    for place, color in enumerate((INK, *OKABE_ITO.values()))
)
"""Styles of lags, where lines are lags and not methods."""


def line_style(method: str) -> LineStyle:
    """The style of a canonical method expression, or of a signal.

    The methods of the comparison have fixed styles. A variant keeps the color of the method it starts with, and has
    another dash; everything else follows from a hash of the expression, so a method looks the same in every figure of
    every machine.
    """
    if method in _FIXED or method in _SIGNALS:
        return _FIXED.get(method) or _SIGNALS[method]
    digest = hashlib.sha256((method + _APART.get(method, "")).encode()).digest()
    known = _FIXED.get(base_name(method))
    colors = (*OKABE_ITO.values(), *MORE_COLORS)
    color = known.color if known else colors[digest[0] % len(colors)]
    dashes: list[Dash] = [dash for dash in DASHES if known is None or dash != known.dash]
    return LineStyle(color, dashes[digest[1] % len(dashes)], MARKERS[digest[2] % len(MARKERS)])


@cache
def _settings() -> dict[str, Any]:
    """Matplotlib's defaults under those of this project."""
    style = resources.files("vcpo_bench.reports.plots") / "vcpo.mplstyle"
    settings: dict[str, Any] = {}
    for some in (mpl.rcParamsDefault, mpl.rc_params_from_file(str(style), use_default_template=False)):
        settings |= {str(name): value for name, value in some.items() if name not in _KEPT}
    return settings


_KEPT = ("backend", "backend_fallback", "interactive", "toolbar")


@contextmanager
def drawing(font_size: float = 8.0, letters: Letters = SANS) -> Iterator[None]:
    """Matplotlib settings of this project, for a `with` block; nothing global changes.

    Names in figures are never read as math, and what matplotlib says of a name without room or glyph is no news to
    who asked for a report.

    Args:
        font_size: Points, in print.
        letters: Fonts.
    """
    sizes = dict.fromkeys(("font.size", "axes.labelsize", "axes.titlesize"), font_size)
    sizes |= {name: max(font_size - 1.0, 7.0) for name in ("xtick.labelsize", "ytick.labelsize", "legend.fontsize")}
    fonts = {"font.family": list(letters.families), "mathtext.fontset": letters.math}
    with mpl.rc_context(cast("Any", {**_settings(), **sizes, **fonts})), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing|.*_layout not applied|cmr10 font should", UserWarning)
        yield
