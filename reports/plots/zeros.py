"""Points that a logarithmic axis has no place for: marked at its lower edge, and counted in the caption."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from vcpo_bench.reports.figure import Line
from vcpo_bench.reports.plots.method_style import line_style


def mark_zeros(axes: Sequence[Axes], lines: Sequence[Line], names: Sequence[str]) -> str:
    """Mark what is not above 0 at the lower edge of panels with a logarithmic axis, where the line falls to.

    Args:
        axes: All panels of the figure, with their scales.
        lines: All lines of the figure.
        names: Of the series in order, for the gids that the legend hides.

    Returns:
        What the caption says of it, with a space in front; empty where no point is marked.
    """
    marked, all_points, least = 0, 0, 0.0
    for line in lines:
        panel = axes[line.panel]
        if panel.get_yscale() != "log":
            continue
        all_points += line.y.size
        off = line.y <= 0
        if off.any():
            marked += int(off.sum())
            least = min(least, float(line.y[off].min()))
            _mark(panel, line, list(names).index(line.name))
    if not marked:
        return ""
    size = "0 or less" if least < 0 else "exactly 0"
    return f" {marked} of {all_points} points {'is' if marked == 1 else 'are'} {size}: markers on the lower edge."


def _mark(panel: Axes, line: Line, index: int) -> None:
    style = line_style(line.name)
    x = line.x[line.y <= 0]
    (drawn,) = panel.plot(
        x,
        [0.0] * x.size,  # of the panel's height
        transform=panel.get_xaxis_transform(),
        color=style.color,
        linestyle="none",
        marker=style.marker,
        clip_on=False,
    )
    drawn.set_gid(f"m{index}-zero-{line.panel}")
