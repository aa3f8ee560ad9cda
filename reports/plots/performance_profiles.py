"""Performance profiles: the share of a method's runs that score above each level."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vcpo_bench.analysis.comparison.best_learning_rate import CONTEXT
from vcpo_bench.reports.figure import Line, Plot, Sheet
from vcpo_bench.reports.plots.caption import several
from vcpo_bench.reports.plots.sheet import add_legend, draw_line, panel_grid
from vcpo_bench.reports.scores import at_rate, scale, score_column, score_name
from vcpo_bench.reports.study import Study


def profiles(study: Study, sheet: Sheet) -> Plot | None:
    """Share of runs above each level of the score, a line per method with its bootstrap band."""
    found = study.findings("compare").tables
    table = found["profiles"][found["profiles"]["share"].notna()]
    if table["method"].nunique() < 2:
        return None
    methods = [name for name in study.methods if (table["method"] == name).any()]
    runs = found["tuned"][found["tuned"][score_column(study)].notna()]
    lines = [_line(table[table["method"] == name], runs[runs["method"] == name]) for name in methods]
    figure, (axes,) = panel_grid(sheet, 1, 1)
    for line in lines:
        draw_line(axes, line, methods)
    axes.set_xlabel(score_name(study))
    axes.set_ylabel("share of runs above")
    axes.set_ylim(-0.03, 1.03)
    add_legend(figure, sheet, methods)
    seeds = several(runs.groupby([*CONTEXT, "method"]).size())
    title = "How are the scores of each method distributed?"
    caption = (
        f"{title} Share of runs with a {score_name(study)} above the level, each at {at_rate(study)}: "
        f"{several((line.runs[0] for line in lines), 'run')} per line, of all tasks and lags with {seeds} each. "
        f"{'Band: 95% stratified bootstrap.' if any(line.low is not None for line in lines) else 'There is no band.'} "
        f"{scale(study)}"
    )
    return Plot("profiles", title, caption, figure, methods, lines, "score", "share", ["all lags"])


def _line(rows: pd.DataFrame, runs: pd.DataFrame) -> Line:
    """The profile of a method; seeds are drawn anew within a task and lag, so one seed there gives no band."""
    x, y, low, high = (rows[name].to_numpy(np.float64) for name in ("level", "share", "low", "high"))
    line = Line(0, str(rows["method"].iloc[0]), x, y, runs=(len(runs),))
    if runs.groupby(CONTEXT).size().max() > 1:
        line.low, line.high = low, high
    return line
