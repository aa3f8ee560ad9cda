"""The picture of the phase study: the largest learning rate that survives, against lag."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vcpo_bench.analysis.wording import learning_rate
from vcpo_bench.reports.plots.method_style import drawing, look

from .design import LADDER, LAGS, STEPS, TASKS

_SHOWN = ("reinforce", "tis", "clip", "gspo(high=0.04,low=0.03)", "vespo", "vcpo(ess=off)", "vcpo")
"""Methods with a line; the others are in the table."""
_ABOVE, _BELOW = LADDER[-1] * 1.5, LADDER[0] / 1.5
"""Where boundaries beyond the ladder are drawn, and where the intervals that reach beyond it end."""
_BANDS = {"over the ladder": (_ABOVE, LADDER[-1] * 1.05), "under the ladder": (_BELOW, LADDER[0] / 1.05)}
_BAND, _WORDS = "0.9", "0.35"
_BETWEEN = 0.27
"""Where words hide no point: halfway between the first two lags, as a share of the panel's width."""
_BEYOND = Line2D([], [], color=_WORDS, marker="^", ls="", ms=5, label="interval beyond the ladder")


def draw(levels: pd.DataFrame, path: Path) -> None:
    """Draw `levels.level_table` into a PNG."""
    with drawing():
        figure = Figure(figsize=(7.2, 3.9))
        panels = figure.subplots(1, len(TASKS), sharey=True)
        arrows = False
        for task, axes in zip(TASKS, panels, strict=True):
            axes.set_title(f"task: {task}")
            axes.set_xlabel("policy lag (updates)")
            _bands(axes)
            for number, method in enumerate(_SHOWN):
                arrows |= _rates(axes, method, _own(levels, task, method), 1 + 0.05 * (number - len(_SHOWN) // 2))
            axes.set(xscale="log", xticks=LAGS, xticklabels=[str(lag) for lag in LAGS], yscale="log")
            axes.set_yticks(LADDER[::2], [learning_rate(rate) for rate in LADDER[::2]])
            axes.minorticks_off()
        panels[0].set_ylabel(f"largest learning rate that\nsurvives {STEPS} updates")
        handles, _ = panels[0].get_legend_handles_labels()
        handles += [_BEYOND] if arrows else []
        figure.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.01), ncols=4, frameon=False)
        figure.savefig(path, dpi=150, bbox_inches="tight")


def _bands(axes: Axes) -> None:
    """Gray where the ladder ends, with its meaning in words."""
    for words, (middle, edge) in _BANDS.items():
        outer = middle**2 / edge
        axes.axhspan(edge, outer, color=_BAND, lw=0, zorder=0)
        axes.text(_BETWEEN, middle, words, transform=axes.get_yaxis_transform(), ha="center", va="center", color=_WORDS)
    axes.set_ylim(_BELOW**2 * 1.05 / LADDER[0], _ABOVE**2 / LADDER[-1] / 1.05)


def _own(table: pd.DataFrame, task: str, method: str) -> pd.DataFrame:
    chosen = (table["task"] == task) & (table["method"] == method) & (table["staleness"] > 0)
    return table[chosen].sort_values("staleness")


def _rates(axes: Axes, method: str, own: pd.DataFrame, shift: float) -> bool:
    """The line of one method; whether an interval reaches beyond the ladder, and has an arrow."""
    value, low, high = (own[name].to_numpy(float) for name in ("largest_rate", "low", "high"))
    over, under = np.isinf(value), np.isnan(value)
    y = np.where(over, _ABOVE, np.where(under, _BELOW, value))
    told = ~over & ~under
    low, high = np.where(told, low, y), np.where(told, high, y)
    ends = np.maximum(low, _BELOW), np.minimum(high, _ABOVE)
    x, style = own["staleness"].to_numpy(float) * shift, look(method)
    axes.errorbar(
        x,
        y,
        yerr=np.abs(np.stack([y - ends[0], ends[1] - y])),
        color=style.color,
        linestyle=style.dash,
        marker=style.marker,
        capsize=2,
        label=method.split("(high")[0] if method.startswith("gspo") else method,
    )
    for beyond, end, arrow in ((low < _BELOW, _BELOW, "v"), (high > _ABOVE, _ABOVE, "^")):
        axes.plot(x[beyond], np.full(beyond.sum(), end), color=style.color, marker=arrow, ls="", ms=5)
    return bool(((low < _BELOW) | (high > _ABOVE)).any())
