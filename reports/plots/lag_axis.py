"""Figures with the lag as their axis: its effect on the final reward, and the lag that was realized."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from vcpo_bench.analysis.intervals import ENOUGH, reward_interval
from vcpo_bench.analysis.series import cell_rows
from vcpo_bench.reports.figure import Array, Line, Plot, Sheet
from vcpo_bench.reports.formatting import rate
from vcpo_bench.reports.plots.caption import estimate, several
from vcpo_bench.reports.plots.method_style import INK
from vcpo_bench.reports.plots.sheet import add_legend, columns_for, draw_at_lags, figure_name, label_edges, panel_grid
from vcpo_bench.reports.plots.ticks import LEAST, places
from vcpo_bench.reports.study import ComparisonSetting, Study


def reward_against_lag(study: Study, sheet: Sheet, task: str, regime: str) -> Plot | None:
    """Final evaluation reward against the lag: mean over seeds with a 95% interval; one panel per learning rate."""
    settings = [one for one in study.settings if (one.task, one.regime) == (task, regime)]
    rates = sorted({one.lr for one in settings})
    lags = sorted({one.lag for one in settings})
    if len(lags) < 2:
        return None
    lines = [
        line
        for panel, lr in enumerate(rates)
        for method in study.methods
        if (line := _final_rewards(study, task, regime, lr, lags, method, panel)) is not None
    ]
    if not lines:
        return None
    methods = [name for name in study.methods if any(line.name == name for line in lines)]
    columns = columns_for(sheet, len(rates))
    figure, axes = panel_grid(sheet, len(rates), columns)
    for line in lines:
        draw_at_lags(axes[line.panel], line, lags, methods)
    lost = [
        _cross(axes[line.panel], line, lags, methods, _ended_as_nan(study, settings, line, rates)) for line in lines
    ]
    label_edges(axes, columns, "lag (updates)", "final reward")
    for panel_axes, lr in zip(axes, rates, strict=True):
        places(panel_axes, lags)
        panel_axes.set_ylim(bottom=0, top=max(1e-3, min(1.1 * max(_tops(lines)), max(_tops(lines)) + 0.1)))
        if len(rates) > 1:
            panel_axes.set_title(f"lr {rate(lr)}")
    add_legend(figure, sheet, methods)
    title = "What does lag cost each method?"
    caption = (
        f"{title} Task {task}, regime {regime}: mean reward of the last three evaluations. "
        f"{estimate(lines, 'Mean over', 'bar', '95% Student-t interval', least=ENOUGH)} Lags stand at equal distances."
    ) + _CROSSES * any(lost)
    labels = [f"lr {rate(lr)}" for lr in rates]
    name = figure_name("reward-lag", task, regime)
    return Plot(name, title, caption, figure, methods, lines, "lag", "final_reward", labels, places=True)


_CROSSES = " A cross: a run there ended as nan, and counts with the reward it had before."


def _ended_as_nan(study: Study, settings: list[ComparisonSetting], line: Line, rates: list[float]) -> list[int]:
    """The lags at which a run of a method ended as nan."""
    here = [one for one in settings if one.lr == rates[line.panel]]
    return [one.lag for one in here if study.runs(one, line.name)["status"].eq("nan").any()]


def _cross(axes: Axes, line: Line, lags: list[int], methods: list[str], lost: list[int]) -> bool:
    """A cross where a run of one method in one panel ended as nan; whether any did."""
    ended = np.isin(line.x, lost)
    if ended.any():
        at = [lags.index(int(lag)) for lag in line.x[ended]]
        (crosses,) = axes.plot(at, line.y[ended], "x", color=INK, markersize=7.0, markeredgewidth=1.2)
        crosses.set_gid(f"m{methods.index(line.name)}-nan-{line.panel}")
    return bool(ended.any())


def _tops(lines: list[Line]) -> list[float]:
    return [float(np.nanmax(line.y if line.high is None else np.fmax(line.y, line.high))) for line in lines]


def _final_rewards(
    study: Study, task: str, regime: str, lr: float, lags: list[int], method: str, panel: int
) -> Line | None:
    found = []
    for setting, name, runs in study.groups():
        if name == method and (setting.task, setting.regime, setting.lr) == (task, regime, lr) and setting.lag in lags:
            rewards = runs.loc[runs["status"] != "error", "final_reward"].dropna().to_numpy(np.float64)
            if rewards.size:
                found.append((setting.lag, rewards.mean(), *reward_interval(rewards), rewards.size))
    if not found:
        return None
    x, y, low, high, sizes = np.array(sorted(found), dtype=np.float64).T
    ends: tuple[Array | None, Array | None] = (None, None) if np.isnan(low).all() else (low, high)
    return Line(panel, method, x, y, *ends, runs=tuple(sorted({int(size) for size in sizes})))


def realized_lag(study: Study, sheet: Sheet) -> Plot | None:
    """Share of consumed trajectories by realized lag, one panel per regime and requested lag."""
    lags = study.results.lags
    if lags.empty:
        return None
    cells = study.results.cells
    place = cells.groupby(["regime", "staleness"], sort=True).ngroup().to_numpy()
    counts = lags["trajectories"].groupby([place[cell_rows(lags, cells)], lags["lag"]]).sum()
    requested = [cells.iloc[int(np.argmax(place == number))] for number in counts.index.unique(level=0)]
    panels = [(str(cell["regime"]), int(cell["staleness"])) for cell in requested]
    columns = columns_for(sheet, len(panels))
    figure, axes = panel_grid(sheet, len(panels), columns, share_x=False)
    lines = []
    for index, ((regime, lag), (_, rows)) in enumerate(zip(panels, counts.groupby(level=0), strict=True)):
        lines.append(_histogram(rows.reset_index("lag"), index))
        line = lines[-1]
        axes[index].vlines(line.x, 0, line.y, color=INK, linewidth=min(6.0, 90.0 / (lag + 6)))
        axes[index].set_xlim(-0.6 - 0.02 * lag, max(line.x.max(), lag, LEAST - 1) + 0.6 + 0.02 * lag)
        axes[index].set_ylim(0, 1.05)
        axes[index].xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=LEAST))
        axes[index].set_title(f"requested: {lag}" + ("" if len({one for one, _ in panels}) == 1 else f" ({regime})"))
        axes[index].set_xlabel("realized lag")
    label_edges(axes, columns, y="share")
    title = "Was the requested lag realized?"
    caption = (
        f"{title} Share of all trajectories that {several([len(cells)], 'run')} consumed, by the lag of their oldest "
        "token; a count, without an interval. The pipeline is filled with "
        "data of the start policy before the first update, so a run of lag k passes through 0..k-1 first."
    )
    labels = [f"{regime}, requested {lag}" for regime, lag in panels]
    return Plot("realized-lag", title, caption, figure, [], lines, "lag", "share", labels)


def _histogram(rows: pd.DataFrame, panel: int) -> Line:
    share = rows["trajectories"] / max(float(rows["trajectories"].sum()), 1.0)
    return Line(panel, "share", rows["lag"].to_numpy(np.float64), share.to_numpy(np.float64))
