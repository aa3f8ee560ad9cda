"""ROC curves of signals of an approaching failure, with intervals."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator

from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.prediction.auroc import REPLICATIONS, auroc_row
from vcpo_bench.analysis.prediction.landmarks import bootstrap_draws, compare, risk_sets
from vcpo_bench.analysis.prediction.panel import LEAST_CONFIGURATIONS, LEAST_RUNS, PRIMARY_LEAD, build_panel
from vcpo_bench.analysis.prediction.roc import RATES, roc_band, roc_curve
from vcpo_bench.reports.figure import Line, Plot, Sheet
from vcpo_bench.reports.formatting import fixed, interval
from vcpo_bench.reports.plots.caption import several
from vcpo_bench.reports.plots.method_style import INK, line_style
from vcpo_bench.reports.plots.sheet import columns_for, label_edges, panel_grid
from vcpo_bench.reports.study import Study

SIGNALS = {"ess": "ESS", "max_weight": "largest weight", "kl": "KL divergence", "grad_norm": "gradient norm"}
"""The signals that are drawn, a panel each, with what the panel is called."""

NEEDS = f"{LEAST_RUNS} collapsed and {LEAST_RUNS} surviving runs of {LEAST_CONFIGURATIONS} configurations each"


def roc(study: Study, sheet: Sheet) -> Plot | None:
    """True against false alarms of each signal some updates before a failure; None with too few runs."""
    known = all_signals()
    panel = build_panel(study.results, {name: known[name] for name in SIGNALS})
    if panel.runs.empty:
        return None
    sets, draws = risk_sets(panel, PRIMARY_LEAD), bootstrap_draws(panel, REPLICATIONS)
    lines: list[Line] = []
    said, rows = [], []
    for name in panel.recorded():
        comparison = compare(panel, name, sets)
        row = auroc_row(comparison, panel, draws)
        if np.isfinite(row["value"]):
            low, high = roc_band(comparison, draws, panel.cluster)
            lines.append(Line(len(lines), name, RATES, roc_curve(comparison), low, high, (row["n_collapsed"],)))
            said.append(f"AUROC {fixed(row['value'])}\n{interval(row['low'], row['high'])}")
            rows.append(row)
    if not lines:
        return None
    columns = columns_for(sheet, len(lines))
    figure, axes = panel_grid(sheet, len(lines), columns)
    for index, (line, text) in enumerate(zip(lines, said, strict=True)):
        _draw(axes[index], line, text)
        axes[index].set_title(SIGNALS[line.name])
    label_edges(axes, columns, "false alarms", "collapses found")
    title = "How well does a signal tell which runs will fail?"
    caption = (
        f"{title} Share of the collapsed runs that a threshold finds {PRIMARY_LEAD} updates before the onset, against "
        "the share of false alarms among runs of the same task, regime and lag that have not collapsed by then: the "
        f"distribution of placement values. {several((row['n_collapsed'] for row in rows), 'collapsed run')} and "
        f"{several((row['n_healthy'] for row in rows), 'surviving run')} per curve. Band: 95% percentile interval at "
        "each rate, resampling configurations. Dashed: chance."
    )
    labels = [SIGNALS[line.name] for line in lines]
    return Plot("ess-vs-collapse-roc", title, caption, figure, [], lines, "false_alarms", "failures_found", labels)


def _draw(axes: Axes, line: Line, text: str) -> None:
    """A curve with its band, the diagonal of chance, and the area in the corner that a good curve leaves free."""
    style = line_style(line.name)
    assert line.low is not None
    assert line.high is not None
    axes.plot([0, 1], [0, 1], color="#7f7f7f", linewidth=0.8, linestyle=(0, (2, 2)))
    axes.fill_between(line.x, line.low, line.high, step="post", color=style.color, alpha=0.18, linewidth=0)
    axes.plot(np.r_[0.0, line.x], np.r_[0.0, line.y], drawstyle="steps-post", color=style.color)
    axes.text(0.97, 0.05, text, transform=axes.transAxes, ha="right", va="bottom", color=INK, multialignment="right")
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator([0, 0.5, 1]))
