"""Can failure be predicted? How well each signal separates failing runs from surviving ones, by lead time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vcpo_bench.reports.figure import Line, Plot, Sheet
from vcpo_bench.reports.plots.caption import several
from vcpo_bench.reports.plots.sheet import add_legend, columns_for, draw_lines, label_edges, panel_grid
from vcpo_bench.reports.study import Study

PANELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("importance weights", ("ess", "max_weight", "kl_length", "tis")),
    ("gradients", ("ess", "grad_norm", "grad_norm_z", "head_norm", "grad_cosine")),
    ("policy, reward, learning rate", ("ess", "entropy_low", "reward_drop", "lr")),
)
"""What stands beside ESS in which panel: names of `analysis.monitoring.signals`."""


def lead_time(study: Study, sheet: Sheet) -> Plot | None:
    """AUROC against lead time, a panel per kind of signal; None where too few runs failed or survived."""
    table = study.findings("auroc").tables["auroc"]
    if table.empty:
        return None
    table = table[(table["lead"] > 0) & table["value"].notna()]
    present = set(table["signal"])
    panels = [(title, [name for name in names if name in present]) for title, names in PANELS]
    panels = [(title, names) for title, names in panels if names]
    signals = list(dict.fromkeys(name for _, names in panels for name in names))
    if not signals:
        return None
    columns = columns_for(sheet, len(panels))
    figure, axes = panel_grid(sheet, len(panels), columns)
    lines = [_line(panel, name, table) for panel, (_, names) in enumerate(panels) for name in names]
    draw_lines(axes, lines, signals)
    leads = sorted({int(lead) for lead in table["lead"]})
    for panel, (title, _) in enumerate(panels):
        axes[panel].axhline(0.5, color="#7f7f7f", linewidth=0.8, linestyle=(0, (2, 2)))
        axes[panel].set_title(title)
        axes[panel].set_xscale("log")
        axes[panel].set_xticks(leads, [str(lead) for lead in leads])
        axes[panel].minorticks_off()
        axes[panel].set_ylim(-0.03, 1.03)
    label_edges(axes, columns, "lead (updates)", "AUROC")
    add_legend(figure, sheet, signals)
    title = "Can collapse be predicted?"
    caption = (
        f"{title} Area under the ROC curve of each signal, a number of updates (the lead) before the onset of "
        "collapse, "
        "against runs of the same task, regime and lag that have not collapsed at the same update. Dashed: chance "
        "(0.5). Below it, the signal's sign is opposite to the one fixed in advance. "
        f"{several(table['n_collapsed'], 'collapsed run')} and {several(table['n_healthy'], 'surviving run')} per "
        "point; band: 95% interval, resampling configurations."
    )
    names = [title for title, _ in panels]
    return Plot("auroc-lead", title, caption, figure, signals, lines, "lead", "auroc", names)


def _line(panel: int, signal: str, table: pd.DataFrame) -> Line:
    rows = table[table["signal"] == signal].sort_values("lead")
    x, y, low, high = (rows[column].to_numpy(np.float64) for column in ("lead", "value", "low", "high"))
    return Line(panel, signal, x, y, low, high)
