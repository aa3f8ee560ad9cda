"""What all figures share: a grid of panels on a sheet of given width, lines with bands, legends and log axes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vcpo_bench.records import SYNCHRONOUS
from vcpo_bench.reports.figure import Line, Sheet
from vcpo_bench.reports.plots.lean_axes import LeanAxes
from vcpo_bench.reports.plots.method_style import line_style
from vcpo_bench.reports.plots.ticks import several_ticks

_LONGEST_FILE = 120  # characters: with its ending and a draft's, below the 255 bytes of file systems

LEGEND_ROW = 1.5
"""Height of a row of a legend, in font sizes."""

LETTER = 0.58
"""Width of a letter of a name on average, in font sizes."""


def panel_grid(
    sheet: Sheet, panels: int, columns: int, *, share_x: bool = True, share_y: bool | Literal["col"] = True
) -> tuple[Figure, list[Axes]]:
    """A figure with `panels` axes in rows of `columns`, outer labels only where axes are shared.

    Call inside `method_style.drawing`; the figure belongs to no window system.
    """
    rows = -(-panels // columns)
    figure = Figure(figsize=(sheet.width, rows * sheet.panel_height + (0.35 if sheet.legend else 0.1)))
    # A shared axis hides its inner tick labels; a row that is not full would then hide them where they are needed.
    axes = figure.subplots(
        rows, columns, squeeze=False, sharex=share_x, sharey=share_y, subplot_kw={"axes_class": LeanAxes}
    )
    flat = list(axes.flat)
    for unused in flat[panels:]:
        unused.remove()
    for index, axis in enumerate(flat[:panels]):
        several_ticks(axis)
        if index + columns >= panels:
            axis.tick_params(labelbottom=True)
    return figure, flat[:panels]


def figure_name(what: str, task: str, regime: str) -> str:
    """Name of a figure of a task and regime, fit for a file and an anchor: `reward-steps-chain`."""
    words = (what, task) if regime == SYNCHRONOUS else (what, task, regime)
    name = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", word).strip("-") for word in words)
    if len(name) <= _LONGEST_FILE:
        return name
    return f"{name[:_LONGEST_FILE]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def columns_for(sheet: Sheet, natural: int) -> int:
    """Panels side by side: the natural number, or as many as fill rows evenly where the sheet lacks room (5: 3 + 2)."""
    rows = -(-natural // sheet.most_columns)
    return max(1, -(-natural // max(rows, 1)))


def label_edges(axes: Sequence[Axes], columns: int, x: str = "", y: str = "") -> None:
    """Name the x axis below the lowest panel of each column, and the y axis beside the first panel of each row."""
    for index, panel in enumerate(axes):
        if x and index + columns >= len(axes):
            panel.set_xlabel(x)
        if y and index % columns == 0:
            panel.set_ylabel(y)


def draw_at_lags(
    axes: Axes, line: Line, lags: Sequence[int], methods: Sequence[str], opacity: float | None = None
) -> None:
    """A method's values with a bar per interval. Lags are places: 0, 1, 16 and 128 stand at equal distance."""
    index, style = methods.index(line.name), line_style(line.name)
    at = [lags.index(int(lag)) for lag in line.x]
    if line.low is not None and line.high is not None:
        bars = axes.vlines(at, line.low, line.high, color=style.color, linewidth=0.8, alpha=opacity)
        bars.set_gid(f"m{index}-bar-{line.panel}")
    (curve,) = axes.plot(at, line.y, color=style.color, linestyle=style.dash, marker=style.marker, linewidth=0.9)
    curve.set_gid(f"m{index}-line-{line.panel}")


def draw_lines(axes: Sequence[Axes], lines: Sequence[Line], methods: Sequence[str]) -> None:
    """Draw every line into its panel. The limits follow from all of them, and not again after each."""
    for panel in axes:
        panel.set_autoscale_on(False)
    for line in lines:
        draw_line(axes[line.panel], line, methods)
    for panel in axes:
        panel.autoscale()


def draw_line(axes: Axes, line: Line, methods: Sequence[str]) -> None:
    """Draw a method's series with its band and look; its artists carry the method's gid."""
    index = list(methods).index(line.name)
    style = line_style(line.name)
    if line.low is not None and line.high is not None:
        band = axes.fill_between(line.x, line.low, line.high, color=style.color, alpha=0.18, linewidth=0)
        band.set_gid(f"m{index}-band-{line.panel}")
    every = max(line.x.size // 5, 1)
    (drawn,) = axes.plot(
        line.x,
        line.y,
        color=style.color,
        linestyle=style.dash,
        marker=style.marker,
        # Markers start at different places, so that lines on top of one another can still be told apart.
        markevery=(index * max(every // 5, 1) % every, every),
    )
    drawn.set_gid(f"m{index}-line-{line.panel}")


def add_legend(figure: Figure, sheet: Sheet, methods: Sequence[str]) -> None:
    """Put the legend of methods above the panels, if the sheet asks for one; the figure grows by what its rows need."""
    if sheet.legend:
        legend_above(figure, sheet, [method_handle(name) for name in methods])


def method_handle(name: str) -> Line2D:
    """What a legend shows of a method."""
    style = line_style(name)
    return Line2D([], [], color=style.color, linestyle=style.dash, marker=style.marker, label=name)


def legend_above(figure: Figure, sheet: Sheet, handles: Sequence[Line2D]) -> None:
    """Put a legend above the panels, in as few rows as fit the sheet."""
    _legend_of(figure, handles, legend_columns(sheet, [str(one.get_label()) for one in handles]))


def folded(names: Sequence[str], inches: float, size: float) -> list[str]:
    """Names that are wider than this in several lines, which begin after a comma or with a plus.

    Args:
        names: One line each.
        inches: Width.
        size: Of their letters, in points.
    """
    most = int(inches * 72 / (LETTER * size))
    found = []
    for name in names:
        lines = [""]
        for piece in re.split(r"(?<=,)|(?=\+)", name):
            if lines[-1] and len(lines[-1]) + len(piece) > most:
                lines.append("")
            lines[-1] += piece
        found.append("\n".join(lines))
    return found


def line_count(names: Sequence[str]) -> int:
    """Lines of the highest of some folded names."""
    return max((name.count("\n") + 1 for name in names), default=1)


def _legend_of(figure: Figure, handles: Sequence[Line2D], columns: int) -> None:
    rows = -(-len(handles) // max(columns, 1))
    if columns <= 1:
        size = mpl.rcParams["legend.fontsize"]
        names = folded([str(one.get_label()) for one in handles], figure.get_figwidth() - 4.6 * size / 72, size)
        for handle, name in zip(handles, names, strict=True):
            handle.set_label(name)
        rows = sum(name.count("\n") + 1 for name in names)
    figure.set_figheight(figure.get_figheight() + (rows - 1) * LEGEND_ROW * mpl.rcParams["legend.fontsize"] / 72)
    figure.legend(handles=handles, loc="outside upper center", ncols=columns, columnspacing=1.2)


def legend_strip(sheet: Sheet, methods: Sequence[str]) -> Figure:
    """A legend for several figures: as wide as the sheet, as high as its rows."""
    figure = Figure(figsize=(sheet.width, 0.0))
    figure.set_layout_engine("none")
    legend_above(figure, sheet, [method_handle(name) for name in methods])
    figure.set_figheight(figure.get_figheight() + 2 * LEGEND_ROW * mpl.rcParams["legend.fontsize"] / 72)
    return figure


def legend_columns(sheet: Sheet, methods: Sequence[str]) -> int:
    """Entries side by side: the fewest rows that fit the sheet's width, filled evenly.

    A column is as wide as its longest entry.
    """
    lengths = np.array([len(name) for name in methods])
    for columns in range(len(methods), 1, -1):
        widths = [part.max() * LETTER + 4.6 for part in np.array_split(lengths, columns)]  # as matplotlib fills them
        if sum(widths) * max(sheet.font_size - 1, 7) / 72 <= sheet.width:
            return -(-len(methods) // -(-len(methods) // columns))
    return 1


def titled_columns(sheet: Sheet, titles: Sequence[str]) -> int:
    """Panels side by side, as `columns_for`, but so few that the title of each fits above it."""
    longest = max((len(title) for title in titles), default=1) * LETTER * sheet.font_size / 72
    fit = int((sheet.width - 0.4) / (longest + 0.05))
    return columns_for(replace(sheet, most_columns=max(1, min(sheet.most_columns, fit))), len(titles))
