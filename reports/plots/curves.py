"""Curves against the update: reward, ESS, gradient norm and others; mean over seeds with their range as a band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.axes import Axes

from vcpo_bench.records.steps import DIAGNOSTICS
from vcpo_bench.reports.figure import Array, Line, Plot, Sheet
from vcpo_bench.reports.formatting import rate
from vcpo_bench.reports.plots.caption import estimate
from vcpo_bench.reports.plots.sheet import (
    add_legend,
    columns_for,
    draw_lines,
    figure_name,
    panel_grid,
)
from vcpo_bench.reports.plots.ticks import (
    all_below,
    log_scale,
    noise_floor,
    over_updates,
    plain,
    say_below,
    say_instead,
)
from vcpo_bench.reports.plots.zeros import mark_zeros
from vcpo_bench.reports.study import ComparisonSetting, Study, bin_edges, binned_runs
from vcpo_bench.reports.symbols import typeset


@dataclass(frozen=True)
class Quantity:
    """A recorded quantity and how it is drawn.

    Attributes:
        name: Of the figure.
        column: Of the table.
        table: `steps` or `evals`.
        label: Of the y axis.
        title: The question the figure answers.
        log: Logarithmic y axis.
        bins: Updates are averaged within at most this many bins.
        by_lag: Panels of one lag share their y axis, not all panels: values of other lags would flatten them.
    """

    name: str
    column: str
    table: str
    label: str
    title: str
    log: bool = False
    bins: int = 24
    by_lag: bool = False


def _recorded(name: str, column: str, title: str, bins: int = 24, by_lag: bool = False) -> Quantity:
    """A column of `records.steps.STEPS`, with the label and axis that it declares."""
    one = DIAGNOSTICS[column]
    return Quantity(name, column, "steps", one.axis_label(), title, one.log_axis, bins, by_lag)


QUANTITIES = (
    Quantity("reward-steps", "sampled_reward", "evals", "held-out reward", "How does each method learn at each lag?"),
    _recorded("ess-steps", "ess_ratio", "How much of each batch still counts?", 40),
    _recorded("grad-norm-steps", "grad_norm", "Do gradients grow before a run collapses?", 40),
    _recorded("kl-steps", "kl_mu_theta_k3", "How far is the policy from its data?"),
    _recorded("log-weight-steps", "log_weight_max", "How large is the largest weight?", by_lag=True),
    _recorded("entropy-steps", "entropy", "Does the policy lose its diversity?"),
    _recorded("step-scale-steps", "step_scale", "How far does each method scale down its step?"),
)


@dataclass(frozen=True)
class _Layout:
    """The panels of a figure, row by row.

    `by_lag`: they are a table with a column per lag and a row per learning rate, which keeps its empty places; else
    they are the settings that were run, one after the other.
    """

    panels: list[ComparisonSetting]
    columns: int
    by_lag: bool
    rates: int
    lags: int

    def beside(self, index: int, lines: list[Line]) -> list[Line]:
        """The lines of the panels that share the y axis of one, where those of one lag do."""
        if self.by_lag:
            return [line for line in lines if (line.panel - index) % self.columns == 0]
        return [line for line in lines if line.panel == index]


def trajectories(study: Study, sheet: Sheet, quantity: Quantity, task: str, regime: str) -> Plot | None:
    """One panel per learning rate (rows) and lag (columns), one line per method; None when nothing was recorded."""
    settings = [one for one in study.settings if (one.task, one.regime) == (task, regime)]
    layout = _laid_out(settings, sheet)
    lines = [line for index, setting in enumerate(layout.panels) for line in lines_of(study, quantity, setting, index)]
    if not lines:
        return None
    methods = [name for name in study.methods if any(line.name == name for line in lines)]
    share: Literal["col"] | bool = ("col" if layout.by_lag else False) if quantity.by_lag else True
    figure, axes = panel_grid(sheet, len(layout.panels), layout.columns, share_y=share)
    draw_lines(axes, lines, methods)
    _write_titles(axes, layout, settings, lines)
    if len(layout.panels) > layout.columns:  # once for all rows: beside a low panel it would run into the next
        typeset(figure.supylabel(quantity.label, fontsize=sheet.font_size))
    else:
        typeset(axes[0].set_ylabel(quantity.label))
    floor = _scale(axes, layout, lines, quantity)
    add_legend(figure, sheet, methods)
    zeros = mark_zeros(axes, lines, methods)
    caption = _caption(quantity, settings[0], layout, lines, says_floor(floor) + zeros)
    labels = [f"lr {rate(one.lr)}, lag {one.lag}" for one in layout.panels]
    name = figure_name(quantity.name, task, regime)
    return Plot(name, quantity.title, caption, figure, methods, lines, "update", quantity.column, labels)


def _laid_out(settings: list[ComparisonSetting], sheet: Sheet) -> _Layout:
    rates = sorted({one.lr for one in settings})
    lags = sorted({one.lag for one in settings})
    if len(lags) > sheet.most_columns:
        return _Layout(settings, columns_for(sheet, len(settings)), False, len(rates), len(lags))
    table = [settings[0]._replace(lr=lr, lag=lag) for lr in rates for lag in lags]
    return _Layout(table, len(lags), True, len(rates), len(lags))


def _write_titles(axes: Sequence[Axes], layout: _Layout, settings: list[ComparisonSetting], lines: list[Line]) -> None:
    """What each panel shows, the name of the x axis below the last row, and why a panel is empty."""
    for index, (setting, panel) in enumerate(zip(layout.panels, axes, strict=True)):
        panel.set_title(_panel_title(setting, layout.rates))
        if index + layout.columns >= len(layout.panels):
            over_updates(panel)
        if all(line.panel != index for line in lines):
            say_instead(panel, "not recorded" if setting in settings else "not run")


def _scale(axes: Sequence[Axes], layout: _Layout, lines: list[Line], quantity: Quantity) -> float:
    """Set the y axes, one for all panels or one per lag; returns where they are cut off, 0 for nowhere."""
    if not quantity.by_lag:
        return set_scale(axes, lines, quantity)
    for index, panel in enumerate(axes):
        _from_zero(panel, layout.beside(index, lines), lines)
    return 0.0


def _caption(quantity: Quantity, setting: ComparisonSetting, layout: _Layout, lines: list[Line], notes: str) -> str:
    where = f"Task {setting.task}, regime {setting.regime}; {_source(quantity)}"
    differ = " The vertical axes of different lags differ." if quantity.by_lag and layout.lags > 1 else ""
    return f"{quantity.title} {where}. {range_over_seeds(lines)}{notes}{differ}"


def _source(quantity: Quantity) -> str:
    if quantity.table == "evals":
        return f"column {quantity.column} of the evaluations on held-out prompts"
    return f"column {quantity.column} of the updates, averaged within up to {quantity.bins} bins"


def _from_zero(axes: Axes, own: list[Line], lines: list[Line]) -> None:
    """A linear y axis that includes 0, of lines of one lag; those that are nothing beside all lines are called so."""
    sizes = np.concatenate([np.abs(line.y) for line in lines])
    floor = noise_floor(sizes) if sizes.any() else 0.0
    if all_below(own, floor):
        axes.set_ylim(0.0, 1.0)
        axes.set_yticks([])  # such a scale measures nothing
        say_below(axes, own, floor)
    else:
        axes.set_ylim(bottom=min([0.0, *(_lowest(line) for line in own)]))


def _lowest(line: Line) -> float:
    """Of a line and its band."""
    return float(np.nanmin(line.y if line.low is None else [line.y, line.low]))


def says_floor(floor: float) -> str:
    """How captions say that a log axis is cut off."""
    return f" Values below {plain(floor)} are not shown." if floor else ""


def range_over_seeds(lines: list[Line]) -> str:
    """How captions say what the lines and bands of `lines_of` are."""
    still = " with a value there" if any(len(line.runs) > 1 for line in lines) else ""
    return estimate(lines, "Line: mean over", "band", f"smallest to largest seed{still}")


def _panel_title(setting: ComparisonSetting, rates: int) -> str:
    return f"lag {setting.lag}, lr {rate(setting.lr)}" if rates > 1 else f"lag {setting.lag}"


def lines_of(
    study: Study, quantity: Quantity, setting: ComparisonSetting, panel: int, methods: list[str] | None = None
) -> list[Line]:
    """Mean over seeds and their range, of each method (or of some) that recorded the quantity in a setting."""
    lines = []
    for method in study.methods if methods is None else methods:
        keys = study.runs(setting, method)["key"]
        runs = [rows for rows in (getattr(study, quantity.table).get(key) for key in keys) if rows is not None]
        runs = [rows for rows in runs if np.isfinite(rows[quantity.column]).any()]
        if not runs:
            continue
        x, values = _stack([(rows["step"], rows[quantity.column]) for rows in runs], quantity)
        finite = np.isfinite(values)
        kept = finite.any(axis=0)
        x, values, finite = x[kept], values[:, kept], finite[:, kept]
        mean = np.where(finite, values, 0.0).sum(axis=0) / finite.sum(axis=0)
        low = np.where(finite, values, np.inf).min(axis=0)
        high = np.where(finite, values, -np.inf).max(axis=0)
        counts = tuple(sorted({int(count) for count in finite.sum(axis=0)}))
        ends: tuple[Array | None, Array | None] = (low, high) if len(runs) > 1 else (None, None)
        lines.append(Line(panel, method, x, mean, *ends, runs=counts))
    return lines


def _stack(runs: list[tuple[Array, Array]], quantity: Quantity) -> tuple[Array, Array]:
    """Runs on a common axis: at the evaluations' own steps, or averaged within bins of updates: [B], [runs, B]."""
    if quantity.table == "evals":
        x = np.unique(np.concatenate([steps for steps, _ in runs]))
        values = np.full((len(runs), x.size), np.nan)
        for row, (steps, series) in zip(values, runs, strict=True):
            row[np.searchsorted(x, steps)] = series
        return x, values
    edges = bin_edges(int(max(steps.max() for steps, _ in runs)), quantity.bins)
    centers = np.floor((edges[:-1] + edges[1:]) / 2)
    return centers, binned_runs(runs, edges)


def set_scale(axes: Sequence[Axes], lines: list[Line], quantity: Quantity) -> float:
    """The y axis of a quantity that these panels share: logarithmic with plain numbers, or from 0 for rewards.

    Args:
        axes: The panels, with their lines drawn.
        lines: All lines of the figure or, where a panel stands alone, its own.
        quantity: What they show.

    Returns:
        Where the axis is cut off; 0: nowhere.
    """
    if quantity.log:
        floor = log_scale(axes[0], np.concatenate([line.y for line in lines] or [np.ones(0)]))
        for index, panel in enumerate(axes):
            say_below(panel, [line for line in lines if len(axes) == 1 or line.panel == index], floor)
        return floor
    if quantity.table == "evals" and lines:
        axes[0].set_ylim(bottom=min(0.0, min(map(_lowest, lines))))
    return 0.0
