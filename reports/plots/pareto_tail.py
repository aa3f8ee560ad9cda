"""How heavy the tail of the importance weights is, where trajectories were recorded."""

from __future__ import annotations

import numpy as np

from vcpo_bench.reports.figure import Array, Line, Plot, Sheet
from vcpo_bench.reports.plots.caption import estimate
from vcpo_bench.reports.plots.method_style import INK
from vcpo_bench.reports.plots.sheet import add_legend, columns_for, draw_lines, panel_grid
from vcpo_bench.reports.plots.ticks import over_updates
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.symbols import typeset

RELIABLE = 0.7
"""Above this Pareto k-hat an importance-sampling mean is not to be relied on (Vehtari et al., 2024)."""


def pareto_k(study: Study, sheet: Sheet) -> Plot | None:
    """Pareto k-hat of the sequence weights against update, a panel per lag; None without recorded trajectories."""
    table = study.findings("weights").tables.get("tails")
    if table is None:
        return None
    table = table[(table["quantity"] == "weight") & table["k"].notna()]
    lags = sorted(table["staleness"].unique())
    if not lags:
        return None
    methods = [name for name in study.methods if (table["method"] == name).any()]
    lines = []
    for panel, lag in enumerate(lags):
        for method in methods:
            rows = table[(table["staleness"] == lag) & (table["method"] == method)]
            if len(rows):
                spread = rows.groupby("step")["k"].quantile(np.array([0.25, 0.5, 0.75])).unstack()
                low, middle, high = (spread[level].to_numpy(np.float64) for level in (0.25, 0.5, 0.75))
                runs = tuple(sorted({int(count) for count in rows.groupby("step")["key"].nunique()}))
                ends: tuple[Array | None, Array | None] = (low, high) if runs[-1] > 1 else (None, None)
                lines.append(Line(panel, method, spread.index.to_numpy(np.float64), middle, *ends, runs=runs))
    columns = columns_for(sheet, len(lags))
    figure, axes = panel_grid(sheet, len(lags), columns)
    draw_lines(axes, lines, methods)
    for panel, lag in enumerate(lags):
        axes[panel].axhline(RELIABLE, color=INK, linewidth=1.1, linestyle=(0, (4, 2)), zorder=5)
        axes[panel].set_title(f"lag {lag}")
        if panel % columns == 0:
            typeset(axes[panel].set_ylabel("Pareto k\u0302"))
        if panel + columns >= len(lags):
            over_updates(axes[panel])
    add_legend(figure, sheet, methods)
    title = "How heavy is the tail of the weights?"
    caption = (
        f"{title} Pareto k-hat of the sequence weights in trailing windows, tasks and learning rates pooled. "
        f"{estimate(lines, 'Line: median of', 'band', 'quartiles', 'run')} "
        f"Above {RELIABLE} (dashed) a weighted mean is not to be relied on."
    )
    return Plot("k-hat", title, caption, figure, methods, lines, "update", "k_hat", [f"lag {lag}" for lag in lags])
