"""Ticks of axes: several on each, and where a logarithmic axis ends so that rounding noise does not stretch it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import AutoLocator, FuncFormatter, Locator, LogLocator, MaxNLocator, NullLocator

from vcpo_bench.reports.figure import Array, Line
from vcpo_bench.reports.plots.method_style import INK

LEAST = 3
"""Ticks of a numeric axis: fewer do not show its scale."""

DECADES = 5
"""Log axes end at least this far below their largest value: below lies the rounding noise of on-policy runs."""


class PlainTicks(LogLocator):
    """Ticks of a logarithmic axis: decades; where the view holds few of them also 2 and 5, or even steps."""

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """The ticks between these ends of the view."""
        finer: tuple[Locator, ...] = (LogLocator(numticks=6), LogLocator(subs=(1.0, 2.0, 5.0), numticks=6))
        ticks = np.zeros(0)
        for locator in (*finer, MaxNLocator(4, min_n_ticks=LEAST)):
            found = np.asarray(locator.tick_values(vmin, vmax), dtype=np.float64)
            ticks = found[(found >= vmin) & (found <= vmax)]
            if ticks.size >= LEAST:
                break
        return [float(tick) for tick in ticks]


def places(axes: Axes, lags: Sequence[int]) -> None:
    """An x axis on which lags stand at equal distances, with room beside the outermost for their bars and markers."""
    axes.set_xticks(range(len(lags)), [str(lag) for lag in lags])
    axes.set_xlim(-0.12 * (len(lags) - 1) - 0.05, 1.12 * (len(lags) - 1) + 0.05)


def over_updates(axes: Axes) -> None:
    """An x axis, still linear, of optimizer updates: whole numbers."""
    axes.set_xlabel("update")
    locator = AutoLocator()
    locator.set_params(integer=True, min_n_ticks=LEAST)
    axes.xaxis.set_major_locator(locator)


def several_ticks(axes: Axes) -> None:
    """At least `LEAST` ticks on both axes, which are still linear."""
    for axis in (axes.xaxis, axes.yaxis):
        locator = AutoLocator()
        locator.set_params(min_n_ticks=LEAST)
        axis.set_major_locator(locator)


def log_scale(axes: Axes, values: Array) -> float:
    """Make the y axis, which panels may share, logarithmic with plain numbers.

    Args:
        axes: With its lines drawn.
        values: All values of the axis; only those above 0 count.

    Returns:
        Where the axis is cut off; 0 where it shows all values above 0.
    """
    positive = values[np.isfinite(values) & (values > 0)]
    if not positive.size:
        return 0.0
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(PlainTicks())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    axes.yaxis.set_minor_locator(NullLocator())
    floor = noise_floor(positive)
    if float(positive.min()) >= floor:
        return 0.0
    axes.set_ylim(floor, 2 * float(positive.max()))
    return floor


def plain(value: float) -> str:
    """The number of a tick: `0.001`, `1e-5`."""
    return f"{value:g}".replace("e-0", "e-")


def noise_floor(values: Array) -> float:
    """A power of ten below which values are called nothing beside the largest of these, which is above 0."""
    return float(10.0 ** (math.floor(math.log10(values.max())) - DECADES))


def say_below(axes: Axes, lines: Sequence[Line], floor: float) -> None:
    """Say of a panel that all its lines lie below the end of its axis; a panel with something to see says nothing.

    Args:
        axes: The panel.
        lines: Its lines.
        floor: Where its axis ends; 0: it shows everything.
    """
    if all_below(lines, floor):
        say_instead(axes, f"below {plain(floor)}")


def all_below(lines: Sequence[Line], floor: float) -> bool:
    """Whether there are lines, and all of them with their bands are smaller than this."""
    drawn = [values for line in lines for values in (line.y, line.low, line.high) if values is not None]
    return bool(drawn) and all(float(np.nanmax(np.abs(values))) < floor for values in drawn)


def say_instead(axes: Axes, text: str) -> None:
    """Write in the middle of a panel why it shows no line."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=INK, alpha=0.6)
