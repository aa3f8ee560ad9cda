"""Performance profiles: the share of a method's runs that score above each level."""

from __future__ import annotations

import numpy as np

from vcpo_bench.analysis.comparison.best_learning_rate import had_choice
from vcpo_bench.reports.figure import Line, Plot, Sheet
from vcpo_bench.reports.plots.sheet import add_legend, draw_line, legend_columns, panel_grid
from vcpo_bench.reports.study import Study


def profiles(study: Study, sheet: Sheet) -> Plot | None:
    """Share of runs above each level of the score, a line per method with its bootstrap band."""
    table = study.findings("compare").tables["profiles"]
    table = table[table["share"].notna()]
    if table["method"].nunique() < 2:
        return None
    methods = [name for name in study.methods if (table["method"] == name).any()]
    lines = []
    for method in methods:
        rows = table[table["method"] == method]
        x, y, low, high = (rows[name].to_numpy(np.float64) for name in ("level", "share", "low", "high"))
        lines.append(Line(0, method, x, y, low, high))
    figure, (axes,) = panel_grid(sheet, 1, 1)
    for line in lines:
        draw_line(axes, line, methods)
    axes.set_xlabel("score")
    axes.set_ylabel("share of runs above")
    axes.set_ylim(-0.03, 1.03)
    if sheet.legend:
        add_legend(figure, methods, legend_columns(sheet, methods))
    tuned = had_choice(study.findings("compare").tables["budget"])
    chosen = ", at the learning rate chosen without the seed" if tuned else ""
    title = "How are the scores of each method distributed?"
    caption = (
        f"{title} Share of runs (tasks, lags and seeds{chosen}) whose score is above the level; score 0 is the start "
        "policy, 1 the best synchronous training. Band: 95% stratified bootstrap."
    )
    return Plot("profiles", title, caption, figure, methods, lines, "score", "share", ["all lags"])
