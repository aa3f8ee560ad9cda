"""The picture of the phase study: the largest learning rate that survives, against lag."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vcpo_bench.analysis.wording import learning_rate
from vcpo_bench.reports.plots.method_style import drawing, look

from .design import LADDER, LAGS, TASKS

_SHOWN = ("reinforce", "tis", "clip", "gspo(high=0.04,low=0.03)", "vespo", "vcpo(ess=off)", "vcpo")
"""Methods with a line; the others are in the table."""
_ABOVE = LADDER[-1] * 1.3
"""Where a boundary beyond the ladder is drawn."""


def draw(levels: pd.DataFrame, path: Path) -> None:
    """Draw `levels.level_table` into a PNG."""
    with drawing():
        figure = Figure(figsize=(7.2, 3.6))
        panels = figure.subplots(1, len(TASKS), sharey=True)
        for task, axes in zip(TASKS, panels, strict=True):
            axes.set_title(task)
            axes.set_xlabel("lag (updates)")
            for number, method in enumerate(_SHOWN):
                _rates(axes, method, _own(levels, task, method), 1 + 0.03 * (number - len(_SHOWN) // 2))
            axes.set(xscale="log", xticks=LAGS, xticklabels=[str(lag) for lag in LAGS], yscale="log")
            axes.set_yticks(LADDER[::2], [learning_rate(rate) for rate in LADDER[::2]])
            axes.axhspan(LADDER[-1], _ABOVE * 1.15, color="0.9", lw=0)
            axes.minorticks_off()
        panels[0].set_ylabel("largest learning rate that survives")
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            loc="upper center",
            bbox_to_anchor=(0.5, 0.0),
            ncols=4,
            frameon=False,
        )
        figure.savefig(path, dpi=150, bbox_inches="tight")


def _own(table: pd.DataFrame, task: str, method: str) -> pd.DataFrame:
    chosen = (table["task"] == task) & (table["method"] == method) & (table["staleness"] > 0)
    return table[chosen].sort_values("staleness")


def _rates(axes: Axes, method: str, own: pd.DataFrame, shift: float) -> None:
    beyond = np.isinf(own["largest_rate"].to_numpy(float))
    y = np.where(beyond, _ABOVE, own["largest_rate"].to_numpy(float))
    low = np.where(np.isfinite(own["low"]) & ~beyond, own["low"], y)
    high = np.where(np.isfinite(own["high"]) & ~beyond, own["high"], y)
    _line(axes, method, own, y, np.maximum(low, LADDER[0]), np.minimum(high, _ABOVE), shift)


def _line(
    axes: Axes, method: str, own: pd.DataFrame, y: np.ndarray, low: np.ndarray, high: np.ndarray, shift: float
) -> None:
    style = look(method)
    axes.errorbar(
        own["staleness"].to_numpy(float) * shift,
        y,
        yerr=np.abs(np.stack([y - low, high - y])),
        color=style.color,
        linestyle=style.dash,
        marker=style.marker,
        capsize=2,
        label=method.split("(high")[0] if method.startswith("gspo") else method,
    )
