"""The one figure: score against lag, each method at its best learning rate, one panel per task."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import MaxNLocator

from vcpo_bench.analysis.wording import learning_rate
from vcpo_bench.reports.figure import Line, Plot, Sheet
from vcpo_bench.reports.plots.method_style import look
from vcpo_bench.reports.plots.sheet import add_legend, columns_for, legend_columns, panel_grid
from vcpo_bench.reports.study import Study


def score_at_best_rate(study: Study, sheet: Sheet) -> Plot | None:
    """Mean score with a 95% interval against the lag; None where there is no lag above 0."""
    table = study.findings("compare").tables["by_task"]
    table = table[table["mean"].notna()]
    if table.empty:
        return None
    tasks = sorted(table["task"].unique())
    methods = [name for name in study.methods if name in set(table["method"])]
    lags = sorted(int(lag) for lag in table["staleness"].unique())
    columns = columns_for(sheet, len(tasks))
    figure, axes = panel_grid(sheet, len(tasks), columns)
    lines = []
    for (task, method), rows in table.groupby(["task", "method"], sort=True):
        rows = rows.sort_values("staleness")
        values = [rows[name].to_numpy(np.float64) for name in ("staleness", "mean", "low", "high")]
        lag, mean, low, high = values
        low, high = np.where(np.isnan(low), mean, low), np.where(np.isnan(high), mean, high)
        lines.append(Line(tasks.index(str(task)), str(method), lag, mean, low, high))
    for line in lines:
        index, style, axis = methods.index(line.name), look(line.name), axes[line.panel]
        assert line.low is not None
        assert line.high is not None
        at = [lags.index(int(lag)) for lag in line.x]
        axis.vlines(at, line.low, line.high, color=style.color, linewidth=0.8, alpha=0.7).set_gid(
            f"m{index}-bar-{line.panel}"
        )
        (curve,) = axis.plot(at, line.y, color=style.color, linestyle=style.dash, marker=style.marker, linewidth=0.9)
        curve.set_gid(f"m{index}-line-{line.panel}")
    for index, (axis, task) in enumerate(zip(axes, tasks, strict=True)):
        axis.set_title(task)
        axis.set_xticks(range(len(lags)), [str(lag) for lag in lags])
        axis.set_xlabel("lag (updates)")
        axis.set_ylim(*_window(lines))
        axis.yaxis.set_major_locator(MaxNLocator(4, min_n_ticks=3))
        if index % columns == 0:
            axis.set_ylabel("score")
    if sheet.legend:
        add_legend(figure, methods, legend_columns(sheet, methods))
    seeds = sorted({int(count) for count in table["seeds"]})
    title, rate = _at_rate(study.results.cells["lr"].unique().tolist())
    caption = (
        f"{title} Mean score of {_span(seeds)} seed{'s' * (seeds != [1])} with a 95% Student-t interval, at {rate}. "
        "Score 0 is the start policy, 1 the best synchronous training, where there is one. Lags stand at equal "
        "distances. A wide interval may leave the panel."
    )
    return Plot("score-lag", title, caption, figure, methods, lines, "lag", "score", tasks, places=True)


def _at_rate(rates: list[float]) -> tuple[str, str]:
    """The question that the figure answers, and at which learning rate: one rate leaves no choice."""
    if len(rates) == 1:
        return "What is each method worth?", f"the one learning rate, {learning_rate(rates[0])}"
    return (
        "What is each method worth at its best learning rate?",
        "the learning rate that the other half of the seeds chose",
    )


def _window(lines: list[Line]) -> tuple[float, float]:
    """Ends of the y axis: the means count, not the interval of a method whose seeds fell apart."""
    means = np.concatenate([line.y for line in lines])
    return float(min(0.0, means.min())) - 0.1, float(max(1.0, means.max())) + 0.15


def _span(counts: list[int]) -> str:
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
