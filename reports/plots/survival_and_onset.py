"""Failing runs: how long runs train before they fail, and what their measurements do around the onset."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from vcpo_bench.analysis.collapse.rule import UNDECIDED
from vcpo_bench.analysis.collapse.survival import kaplan_meier
from vcpo_bench.analysis.intervals import ENOUGH
from vcpo_bench.records.steps import DIAGNOSTICS
from vcpo_bench.reports.figure import Array, Line, Plot, Sheet
from vcpo_bench.reports.plots.caption import estimate, several
from vcpo_bench.reports.plots.method_style import SURVIVORS, line_style
from vcpo_bench.reports.plots.sheet import (
    add_legend,
    columns_for,
    draw_lines,
    panel_grid,
)
from vcpo_bench.reports.plots.ticks import LEAST, log_scale, over_updates, say_below
from vcpo_bench.reports.plots.zeros import mark_zeros
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.symbols import typeset

BEFORE, AFTER, BIN = 80, 40, 4
_ALIGNED = tuple(DIAGNOSTICS[name] for name in ("ess_ratio", "sampled_reward", "grad_norm", "kl_mu_theta_k3"))


def survival(study: Study, sheet: Sheet) -> Plot | None:
    """Kaplan-Meier curves of runs not yet failed, a panel per lag; None when no run failed."""
    cells = study.cells[study.cells["event"].ne("not applicable") & study.cells["last_step"].notna()]
    if not cells["collapsed"].any():
        return None
    lags = sorted(cells["staleness"].unique())
    methods = [name for name in study.methods if (cells["method"] == name).any()]
    columns = columns_for(sheet, len(lags))
    figure, axes = panel_grid(sheet, len(lags), columns)
    lines = []
    for index, lag in enumerate(lags):
        for method in methods:
            runs = cells[(cells["staleness"] == lag) & (cells["method"] == method)]
            if len(runs):
                line = _survival_line(index, method, runs)
                lines.append(line)
                _draw_steps(axes[index], line, methods)
        axes[index].set_title(f"lag {lag}")
        axes[index].set_ylim(-0.03, 1.03)
        if index + columns >= len(lags):
            over_updates(axes[index])
        if index % columns == 0:
            axes[index].set_ylabel("share not yet collapsed")
    add_legend(figure, sheet, methods)
    title = "How long until runs fail?"
    band = any(line.low is not None and (line.low < line.y).any() for line in lines)
    seeds = several(cells.groupby(["task", "regime", "lr", "staleness", "method"]).size())
    caption = (
        f"{title} Kaplan-Meier estimate of the share of runs that have not collapsed by the collapse rule (collapse, "
        f"collapse with rebound, nan): {several((line.runs[0] for line in lines), 'run')} per line, tasks and learning "
        f"rates pooled, {seeds} each. Runs that reached their end, or that an alarm stopped, are censored there. "
        f"{'Band: 95% log-log interval.' if band else 'There is no band.'}"
    )
    labels = [f"lag {lag}" for lag in lags]
    return Plot("survival", title, caption, figure, methods, lines, "update", "survival", labels)


def _survival_line(panel: int, method: str, runs: pd.DataFrame) -> Line:
    time = runs["onset"].where(runs["collapsed"], runs["last_step"])
    curve = kaplan_meier(time.to_numpy(np.float64), runs["collapsed"].to_numpy(bool))
    x, y, low, high = (curve[name].to_numpy(np.float64) for name in ("time", "survival", "low", "high"))
    few = len(runs) < ENOUGH
    return Line(panel, method, x, y, None if few else low, None if few else high, (len(runs),))


def _draw_steps(axes: Axes, line: Line, methods: list[str]) -> None:
    index, style = methods.index(line.name), line_style(line.name)
    (drawn,) = axes.plot(
        line.x, line.y, drawstyle="steps-post", color=style.color, linestyle=style.dash, marker=style.marker
    )
    drawn.set_gid(f"m{index}-line-{line.panel}")
    if line.low is not None and line.high is not None and (line.low < line.high).any():
        band = axes.fill_between(line.x, line.low, line.high, step="post", color=style.color, alpha=0.15, linewidth=0)
        band.set_gid(f"m{index}-band-{line.panel}")


def at_onset(study: Study, sheet: Sheet) -> Plot | None:
    """Measurements of failed runs aligned at the onset, with runs of the same setting that survived as reference."""
    failed = study.cells[
        study.cells["collapsed"] & study.cells["onset"].notna() & study.cells["key"].isin(list(study.steps))
    ]
    if failed.empty:
        return None
    methods = [name for name in study.methods if (failed["method"] == name).any()]
    lines = [line for place, one in enumerate(_ALIGNED) for line in _aligned(study, failed, methods, one.name, place)]
    before = [line for line in lines if line.name != SURVIVORS]
    if not before:
        return None
    columns = columns_for(sheet, len(_ALIGNED))
    if -(-len(_ALIGNED) // columns) * sheet.panel_height > sheet.most_height:  # on a slide: side by side
        columns = len(_ALIGNED)
    figure, axes = panel_grid(sheet, len(_ALIGNED), columns, share_y=False)
    names = [*methods, SURVIVORS] if any(line.name == SURVIVORS for line in lines) else methods
    draw_lines(axes, lines, names)
    for index, one in enumerate(_ALIGNED):
        panel = axes[index]
        panel.axvline(0, color="#7f7f7f", linewidth=0.8, linestyle=(0, (2, 2)))
        panel.set_title(one.axis_label())
        typeset(panel.title)
        own = [line for line in lines if line.panel == index]
        if one.log_axis and own:
            say_below(panel, own, log_scale(panel, np.concatenate([line.y for line in own])))
        panel.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 4, 5, 10], min_n_ticks=LEAST))
    figure.supxlabel("updates since onset", fontsize=sheet.font_size)
    add_legend(figure, sheet, names)
    title = "What changes before a collapse?"
    caption = (
        f"{title} Collapsed runs ({len(failed)}, by the collapse rule) aligned at the onset of the collapse: the first "
        "evaluation of the fall, so the fall itself may begin up to one evaluation earlier. "
        f"{estimate(before, 'Line: median of', 'band', 'quartiles', 'run')} A line rests on the runs with values over "
        "all of it, at least half of them."
    )
    caption += mark_zeros(axes, lines, names)
    if SURVIVORS in names:
        caption += " Gray: runs at the same task, lag and learning rate that survived, at the same updates."
    labels = [one.axis_label() for one in _ALIGNED]
    return Plot("ess-vs-collapse", title, caption, figure, names, lines, "since_onset", "value", labels)


def _aligned(study: Study, failed: pd.DataFrame, methods: list[str], column: str, panel: int) -> list[Line]:
    edges = np.arange(-BEFORE, AFTER + BIN, BIN, dtype=np.float64)
    lines = []
    for method in methods:
        runs = failed[failed["method"] == method]
        rows = _windows(study, runs, column)
        lines += _quartiles(panel, method, edges, rows)
    survivors = study.cells[~study.cells["collapsed"] & ~study.cells["event"].isin(UNDECIDED)]
    setting = ["task", "regime", "lr", "staleness"]
    pairs = failed[["onset", *setting]].merge(survivors[["key", *setting]], on=setting)
    rows = _windows(study, pairs, column)
    return lines + _quartiles(panel, SURVIVORS, edges, rows)


def constant_set(recorded: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The runs and the stretch of bins that a line rests on: every one of these runs has a value in every bin.

    With another set of runs in every bin a line jumps where runs join or leave. Of all stretches that at least half of
    the runs cover, the one with the most values is taken.

    Args:
        recorded: Whether a run has a value in a bin, `[runs, bins]`.

    Returns:
        Which runs, `[runs]`, and which bins, `[bins]`; no bin where no stretch is covered by half of the runs.
    """
    count, bins = recorded.shape
    best, found = 0, (np.zeros(count, dtype=bool), np.zeros(bins, dtype=bool))
    for first in range(bins):
        runs = np.ones(count, dtype=bool)
        for last in range(first, bins):
            runs = runs & recorded[:, last]
            covering = int(runs.sum())
            if 2 * covering < count:
                break
            if covering * (last + 1 - first) > best:
                best, found = (
                    covering * (last + 1 - first),
                    (runs, (np.arange(bins) >= first) & (np.arange(bins) <= last)),
                )
    return found


def _windows(study: Study, pairs: pd.DataFrame, column: str) -> Array:
    """`[pairs, bins]` means of a column of the run `key` within bins of updates since `onset`, run by run."""
    means = np.full((len(pairs), (BEFORE + AFTER) // BIN), np.nan)
    onsets = pairs["onset"].to_numpy(np.float64)
    for key, places in pairs.groupby("key", sort=False).indices.items():
        run = study.steps.get(str(key))
        if run is not None:
            when, same = np.unique(onsets[places], return_inverse=True)  # evaluations, where many failures begin
            means[places] = _means(run["step"], run[column], when)[same]
    return means


def _means(steps: Array, values: Array, onsets: Array) -> Array:
    """`[onsets, bins]` of one run; NaN where a bin holds no finite value."""
    bins = (BEFORE + AFTER) // BIN
    place = np.floor((steps[None, :] - onsets[:, None] + BEFORE) / BIN).astype(np.int64)
    inside = (place >= 0) & (place < bins) & np.isfinite(values)[None, :]
    cell = (place + bins * np.arange(onsets.size)[:, None])[inside]
    weight = np.broadcast_to(values, place.shape)[inside]
    total = np.bincount(cell, weights=weight, minlength=bins * onsets.size).reshape(-1, bins)
    count = np.bincount(cell, minlength=bins * onsets.size).reshape(-1, bins)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _quartiles(panel: int, name: str, edges: Array, values: Array) -> list[Line]:
    if not len(values):
        return []
    runs, kept = constant_set(np.isfinite(values))
    if not kept.any():
        return []
    chosen = values[np.ix_(runs, kept)]  # a copy: with thousands of runs a second one matters
    low, middle, high = np.quantile(chosen, [0.25, 0.5, 0.75], axis=0, overwrite_input=True)
    count = int(runs.sum())
    ends: tuple[Array | None, Array | None] = (low, high) if count > 1 else (None, None)
    return [Line(panel, name, edges[:-1][kept] + BIN / 2, middle, *ends, runs=(count,))]
