"""The one figure: score against lag, each method at its best learning rate, one panel per task."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from vcpo_bench.analysis.intervals import ENOUGH
from vcpo_bench.reports.figure import Line, Plot, Sheet
from vcpo_bench.reports.plots.caption import estimate
from vcpo_bench.reports.plots.sheet import add_legend, draw_at_lags, label_edges, panel_grid, titled_columns
from vcpo_bench.reports.plots.ticks import LEAST, places
from vcpo_bench.reports.scores import at_rate, scale, score_name, was_chosen
from vcpo_bench.reports.study import Study


def score_at_best_rate(study: Study, sheet: Sheet) -> Plot | None:
    """Mean score with its interval against the lag; None where no method has a score at a lag above 0."""
    table = study.findings("compare").tables["by_task"]
    table = table[table["mean"].notna()]
    if table.empty:
        return None
    tasks = sorted(table["task"].unique())
    methods = [name for name in study.methods if name in set(table["method"])]
    lags = sorted(int(lag) for lag in table["staleness"].unique())
    columns = titled_columns(sheet, tasks)
    figure, axes = panel_grid(sheet, len(tasks), columns)
    lines = [
        _line(tasks.index(str(task)), str(method), rows.sort_values("staleness"))
        for (task, method), rows in table.groupby(["task", "method"], sort=True)
    ]
    for line in lines:
        draw_at_lags(axes[line.panel], line, lags, methods, opacity=0.7)
    window = _window(lines)
    label_edges(axes, columns, "lag (updates)", score_name(study))
    for axis, task in zip(axes, tasks, strict=True):
        axis.set_title(task)
        places(axis, lags)
        axis.set_ylim(*window)
        axis.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], min_n_ticks=LEAST))
    add_legend(figure, sheet, methods)
    title = f"What is each method worth{' at its best learning rate' * was_chosen(study)}?"
    caption = f"{title} {_how_sure(study, lines)} {scale(study)} Lags stand at equal distances."
    if any(_leaves(line, *window) for line in lines):
        caption += " A wide interval leaves its panel."
    return Plot("score-lag", title, caption, figure, methods, lines, "lag", "score", tasks, places=True)


def _line(panel: int, method: str, rows: pd.DataFrame) -> Line:
    """The scores of a method on a task, lag by lag; without a single interval the line has none."""
    lag, mean, low, high = (rows[name].to_numpy(np.float64) for name in ("staleness", "mean", "low", "high"))
    runs = tuple(sorted({int(count) for count in rows["seeds"]}))
    if np.isnan(low).all():
        return Line(panel, method, lag, mean, runs=runs)
    return Line(panel, method, lag, mean, low, high, runs)


def _how_sure(study: Study, lines: list[Line]) -> str:
    """Over how many seeds, with which interval, and at which learning rate."""
    interval = "95% Student-t interval"
    if was_chosen(study):
        interval += ", widened for the choice of learning rates"
    noun = "seed" if study.cells["regime"].nunique() == 1 else "run"
    name = score_name(study)
    return f"{estimate(lines, f'Mean {name} of', 'bar', interval, noun, ENOUGH)} Each at {at_rate(study)}."


def _window(lines: list[Line]) -> tuple[float, float]:
    """Ends of the y axis: the means count, not the interval of a method whose seeds fell apart."""
    means = np.concatenate([line.y for line in lines])
    return float(min(0.0, means.min())) - 0.1, float(max(1.0, means.max())) + 0.15


def _leaves(line: Line, bottom: float, top: float) -> bool:
    """Whether an interval of the line ends outside the panel."""
    if line.low is None or line.high is None:
        return False
    return bool(np.nanmin(line.low) < bottom or np.nanmax(line.high) > top)
