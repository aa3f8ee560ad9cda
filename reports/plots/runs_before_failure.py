"""Every run as a point: its ESS some updates before a failure, against what became of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from vcpo_bench.analysis.collapse.rule import UNDECIDED
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD, WINDOW
from vcpo_bench.reports.figure import Line, Plot, Sheet
from vcpo_bench.reports.plots.caption import several
from vcpo_bench.reports.plots.method_style import line_style
from vcpo_bench.reports.plots.sheet import columns_for, label_edges, legend_above, panel_grid
from vcpo_bench.reports.plots.ticks import PlainTicks, plain
from vcpo_bench.reports.study import Study

_PLACE = ["task", "regime", "staleness"]
_GRAY = "#7f7f7f"
_MARKS = {"collapsed": _GRAY, "survived": "none"}
"""How the points of runs that failed and that survived are filled."""


def runs_before_failure(study: Study, sheet: Sheet) -> Plot | None:
    """ESS ratio before a failure against final reward, a panel per lag and a point per run; None without a failure."""
    runs = _runs(study)
    if not runs["collapsed"].any():
        return None
    lags = sorted(runs["staleness"].unique())
    methods = [name for name in study.methods if (runs["method"] == name).any()]
    columns = columns_for(sheet, len(lags))
    figure, axes = panel_grid(sheet, len(lags), columns)
    lines = []
    for (lag, method), own in runs.groupby(["staleness", "method"], sort=True):
        own, panel = own.sort_values("ess"), lags.index(lag)
        lines.append(
            Line(
                panel, str(method), own["ess"].to_numpy(np.float64), own["kept"].to_numpy(np.float64), runs=(len(own),)
            )
        )
        _draw(axes[panel], own, str(method), f"m{methods.index(str(method))}", panel)
    label_edges(axes, columns, y="final / best reward")
    _scales(axes, runs)
    for panel, lag in enumerate(lags):
        axes[panel].axhline(0.5, color=_GRAY, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0.5)
        axes[panel].set_title(f"lag {lag}")
    # once: below a narrow panel it would run into the next
    figure.supxlabel(f"ESS ratio, {PRIMARY_LEAD} updates before the collapse", fontsize=sheet.font_size)
    if sheet.legend:
        legend_above(figure, sheet, [*(_handle(name) for name in methods), *(_handle(name) for name in _MARKS)])
    title = "Does a low ESS tell which run will collapse?"
    failed = int(runs["collapsed"].sum())
    caption = (
        f"{title} Each point is a run: {several([failed], 'collapsed run')} (filled) and "
        f"{several([len(runs) - failed], 'surviving run')} (open); no interval, since every run is shown. Horizontal: "
        f"ESS ratio, mean of the {WINDOW} updates that end {PRIMARY_LEAD} updates before the onset of the collapse; of "
        "a run that survived, at the median of these updates of the collapsed runs of its task and lag, or of all "
        "where none collapsed there. Vertical: final reward as a share of the run's best. Dashed: half of it, below "
        "which the collapse rule calls a run down."
    )
    labels = [f"lag {lag}" for lag in lags]
    return Plot("ess-vs-collapse-runs", title, caption, figure, methods, lines, "ess_ratio", "final_over_best", labels)


def _runs(study: Study) -> pd.DataFrame:
    """The runs at a lag above 0 that have an outcome and an ESS at their landmark: `ess`, `kept`, and what they are."""
    cells = study.cells
    cells = cells[(cells["staleness"] > 0) & ~cells["event"].isin(UNDECIDED) & (cells["best_reward"] > 0)]
    cells = cells[cells["key"].isin(list(study.steps))]
    due = (cells["onset"] - PRIMARY_LEAD).where(cells["collapsed"])
    here = due.groupby([cells[name] for name in _PLACE]).transform("median")
    landmark = due.fillna(here).fillna(due.median())
    ess = [_mean_before(study, str(key), at) for key, at in zip(cells["key"], landmark, strict=True)]
    runs = cells.assign(ess=ess, kept=cells["final_reward"] / cells["best_reward"])
    return runs[(runs["ess"] > 0) & runs["kept"].notna()]


def _mean_before(study: Study, key: str, landmark: float) -> float:
    """Mean ESS ratio of the updates of a run just before its landmark; NaN where there are none."""
    steps = study.steps[key]
    inside = (steps["step"] >= landmark - WINDOW) & (steps["step"] < landmark) & np.isfinite(steps["ess_ratio"])
    return float(steps["ess_ratio"][inside].mean()) if inside.any() else float("nan")


def _draw(axes: Axes, runs: pd.DataFrame, method: str, gid: str, panel: int) -> None:
    style = line_style(method)
    for name, fill in _MARKS.items():
        some = runs[runs["collapsed"] == (name == "collapsed")]
        (points,) = axes.plot(
            some["ess"],
            some["kept"],
            linestyle="none",
            marker=style.marker,
            markersize=4.5,
            markeredgewidth=0.9,
            markeredgecolor=style.color,
            markerfacecolor=fill if fill == "none" else style.color,
            alpha=0.85,
        )
        points.set_gid(f"{gid}-{name}-{panel}")


def _handle(name: str) -> Line2D:
    """An entry of the legend: a method, or what a filled and an open point are."""
    style = line_style(name)
    color = _GRAY if name in _MARKS else style.color
    marker = "o" if name in _MARKS else style.marker
    fill = _MARKS.get(name, color)
    return Line2D(
        [],
        [],
        linestyle="none",
        marker=marker,
        markersize=4.5,
        markeredgewidth=0.9,
        markeredgecolor=color,
        markerfacecolor=fill,
        label=name,
    )


def _scales(axes: list[Axes], runs: pd.DataFrame) -> None:
    """A logarithmic x axis with plain numbers, and a y axis from 0, for all panels."""
    for panel in axes:
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(PlainTicks())
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set_xlim(0.8 * float(runs["ess"].min()), min(1.25 * float(runs["ess"].max()), 1.05))
        panel.set_ylim(-0.05, 1.08)
