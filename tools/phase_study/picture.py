"""The picture of the phase study: the largest surviving learning rate against lag, one panel per task."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from design import LADDER, TASKS
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vcpo_bench.analysis.wording import learning_rate
from vcpo_bench.reports.plots.method_style import drawing, look

_SHOWN = ("reinforce", "tis", "clip", "gspo(high=0.04,low=0.03)", "vespo", "vcpo(ess=off)", "vcpo")
"""Methods with a line; the others are in the table."""
_ABOVE = LADDER[-1] * 1.3
"""Where a boundary beyond the ladder is drawn, as an arrow."""


def draw(levels: pd.DataFrame, path: Path) -> None:
    """Draw `levels.level_table` into a PNG."""
    with drawing():
        figure = Figure(figsize=(7.2, 3.3))
        panels = figure.subplots(1, len(TASKS), sharey=True)
        for axes, task in zip(panels, TASKS, strict=True):
            for number, method in enumerate(_SHOWN):
                own = levels[(levels["task"] == task) & (levels["method"] == method) & (levels["staleness"] > 0)]
                _line(axes, method, own.sort_values("staleness"), 1 + 0.03 * (number - 3))
            axes.set(title=task, xlabel="lag (updates)", xscale="log", yscale="log", xticks=[4, 16, 64])
            axes.set_xticklabels(["4", "16", "64"])
            axes.set_yticks(LADDER[::2], [learning_rate(rate) for rate in LADDER[::2]])
            axes.minorticks_off()
            axes.axhspan(LADDER[-1], _ABOVE * 1.15, color="0.9", lw=0)
        panels[0].set_ylabel("largest learning rate that survives")
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=4, frameon=False)
        figure.savefig(path, dpi=150, bbox_inches="tight")


def _line(axes: Axes, method: str, own: pd.DataFrame, shift: float) -> None:
    style = look(method)
    x = own["staleness"].to_numpy(float) * shift
    beyond = np.isinf(own["largest_rate"].to_numpy(float))
    y = np.where(beyond, _ABOVE, own["largest_rate"].to_numpy(float))
    low = np.where(beyond, y, own["low"].to_numpy(float))
    high = np.where(np.isfinite(own["high"]) & ~beyond, own["high"].to_numpy(float), y)
    axes.errorbar(
        x,
        y,
        yerr=np.abs(np.stack([y - np.where(np.isfinite(low), low, y), high - y])),
        color=style.color,
        linestyle=style.dash,
        marker=style.marker,
        capsize=2,
        label=method.split("(high")[0] if method.startswith("gspo") else method,
    )
