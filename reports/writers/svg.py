"""A drawn figure as an SVG string: bit-identical every time, small, and able to share one page with others."""

from __future__ import annotations

import hashlib
import io
import re

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from vcpo_bench.reports.document import Picture
from vcpo_bench.reports.figure import Plot, Sheet
from vcpo_bench.reports.plots.method_style import GRID, INK, LineStyle, drawing

_TWO_DIGITS = re.compile(r"(\d\.\d\d)\d+")
_COORDINATES = re.compile(r'( (?:d|x|y)=")([^"]*)"')
_TRANSLATION = re.compile(r"translate\([^)]*\)")
_POINT_OR_END = re.compile(r"([ML])\s*(\S+)\s+(\S+)\s*|z\s*")
_DARK = re.compile("#(332288|882255|661100)")
"""Colors of methods that a dark page, whose style sheet knows them, has to lighten."""
_FOR_DARK = r"var(--c\1, #\1)"
_STRAIGHT = re.compile(r"[MLz0-9.\-\s]*")


def draw_svg(picture: Picture, sheet: Sheet) -> tuple[Plot, str] | None:
    """A picture's figure, and the figure as SVG; None: the results do not have what it shows."""
    with drawing(sheet.font_size):
        plot = picture.draw(sheet)
        return None if plot is None else (plot, to_svg(plot))


def to_svg(plot: Plot) -> str:
    """The figure as a standalone SVG document without date, creator or metadata. Call inside `style.drawing`."""
    stream = io.StringIO()
    lay_out(plot.figure)
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    plot.figure.savefig(stream, format="svg", metadata=nothing)
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = _TRANSLATION.sub(lambda match: _TWO_DIGITS.sub(r"\1", match.group(0)), text)
    return _COORDINATES.sub(lambda match: f'{match.group(1)}{_shorter(match.group(2))}"', text)


def lay_out(figure: Figure) -> None:
    """Put the panels in their final places as `savefig` would, which draws all lines an extra time for that."""
    engine = figure.get_layout_engine()
    if engine is None:
        return
    FigureCanvasSVG(figure)  # texts are measured as they will be written
    dpi, figure.dpi = figure.dpi, 72  # of every SVG
    engine.execute(figure)
    figure.dpi = dpi
    # Without any engine: one that does nothing would still cost the extra drawing.
    with mpl.rc_context({"figure.constrained_layout.use": False, "figure.autolayout": False}):
        figure.set_layout_engine(None)


def _shorter(data: str) -> str:
    """Path data without digits below what a screen or printer resolves; long curves in steps instead of positions."""
    if len(data) > 200 and _STRAIGHT.fullmatch(data):
        return _POINT_OR_END.sub(_Steps(), data).replace("\n", "").replace(" -", "-").strip()
    return re.sub(r"\s*\n\s*", " ", _TWO_DIGITS.sub(r"\1", data)).strip()


class _Steps:
    """Turns the points of a path into steps of tenths of a point; rounding does not add up along the way."""

    def __init__(self) -> None:
        self._last = (0, 0)

    def __call__(self, match: re.Match[str]) -> str:
        if match.group(1) is None:
            return "z"
        command, point = match.group(1), (round(10 * float(match.group(2))), round(10 * float(match.group(3))))
        step = (point[0] - self._last[0], point[1] - self._last[1])
        self._last = point
        x, y = point if command == "M" else step
        return f"{'M' if command == 'M' else 'l'}{x / 10:g} {y / 10:g}"


def inline(svg: str, prefix: str, label: str) -> str:
    """The SVG for use inside a page: unique ids, text and grid in the page's colors, an accessible name.

    Groups that belong to method m (gid `m<m>-...`) get the class `m<m>` so that the legend can hide them.

    Args:
        svg: From `to_svg`.
        prefix: Put before every id, unique in the page; letters and digits.
        label: What the figure shows; escaped here.
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r'<g id="(m\d+)-[^"]*"', r'<g class="\1"', body)
    # Groups that nothing refers to need no name.
    body = re.sub(r'<g id="[^"]*"', "<g", body)
    body = _short_ids(body, prefix)
    # The drawing's rule for all elements must not reach the rest of the page.
    body = body.replace("*{", ".drawn *{").replace("<svg ", '<svg class="drawn" ', 1)
    body = body.replace(INK, "currentColor").replace(GRID, "var(--grid, #d0d0d1)")
    body = _DARK.sub(_FOR_DARK, body)
    body = _styles_to_classes(re.sub(r"\n\s*", "\n", body).replace(">\n<", "><"))
    body = re.sub(r'<svg ([^>]*?)height="[^"]*"([^>]*?)width="[^"]*"', r"<svg \1\2", body, count=1)
    body = re.sub(r'<svg ([^>]*?)width="[^"]*"([^>]*?)height="[^"]*"', r"<svg \1\2", body, count=1)
    return body.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)


def _short_ids(body: str, prefix: str) -> str:
    """Number the ids in order of appearance and drop the namespace that HTML does without."""
    names: dict[str, str] = {}
    for name in re.findall(r'\bid="([^"]*)"', body):
        names.setdefault(name, f"{prefix}-{len(names)}")
    body = re.sub(r'\bid="([^"]*)"', lambda match: f'id="{names[match.group(1)]}"', body)
    body = re.sub(r'xlink:href="#([^"]*)"', lambda match: f'href="#{names[match.group(1)]}"', body)
    return re.sub(r"url\(#([^)]*)\)", lambda match: f"url(#{names[match.group(1)]})", body)


def _styles_to_classes(body: str) -> str:
    """Collect the style attributes in one style element; a class is named after its content, the same everywhere."""
    rules: dict[str, str] = {}

    def replace(match: re.Match[str]) -> str:
        style = match.group(1)
        name = "s" + hashlib.sha256(style.encode()).hexdigest()[:6]
        rules[name] = style
        return f' class="{name}"'

    body = re.sub(r' style="([^"]*)"', replace, body)
    sheet = "".join(f".{name}{{{rules[name]}}}" for name in sorted(rules))
    return body.replace("</style>", f"{sheet}</style>", 1)


def swatch(style: LineStyle) -> Markup:
    """A short line in the style of a method, for the legend of a page."""
    color = "currentColor" if style.color == INK else _DARK.sub(_FOR_DARK, style.color)
    dashes = "" if isinstance(style.dash, str) else ",".join(f"{length * 1.6:g}" for length in style.dash[1])
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    shape = _SHAPES[style.marker]
    return Markup(
        f'<svg viewBox="0 0 34 12" width="34" height="12" aria-hidden="true"><g stroke="{color}" fill="{color}">'
        f'<path d="M1 6H33" stroke-width="2" fill="none"{dash}/><path d="{shape}" stroke="none"/></g></svg>'
    )


_SHAPES = {
    ".": "M15 6a2 2 0 1 0 4 0a2 2 0 1 0-4 0z",
    "o": "M13 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "s": "M13.5 2.5h7v7h-7z",
    "^": "M17 1.5l4.5 8h-9z",
    "v": "M17 10.5l4.5-8h-9z",
    "<": "M12.5 6l8-4.5v9z",
    ">": "M21.5 6l-8-4.5v9z",
    "D": "M17 1l5 5l-5 5l-5-5z",
    "p": "M17 1.5l4.5 3.300l-1.700 5.200h-5.600l-1.700-5.200z",
    "P": "M15.5 1.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "X": "M13 3.5l1.5-1.5l2.5 2.5l2.5-2.5l1.5 1.5l-2.5 2.5l2.5 2.5l-1.5 1.5l-2.5-2.5l-2.5 2.5l-1.5-1.5l2.5-2.5z",
}
