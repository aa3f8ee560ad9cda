"""Figures of the papers, redrawn from recorded data (or in closed form) under the names of their originals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from vcpo_bench.analysis.method_text import base_name
from vcpo_bench.reports.figure import Array, Line, Plot, Sheet
from vcpo_bench.reports.formatting import rate
from vcpo_bench.reports.plots.curves import QUANTITIES, lines_of, range_over_seeds, says_floor, set_scale
from vcpo_bench.reports.plots.method_style import LAG_STYLES
from vcpo_bench.reports.plots.sheet import add_legend, draw_lines, panel_grid
from vcpo_bench.reports.plots.ticks import over_updates
from vcpo_bench.reports.plots.zeros import mark_zeros
from vcpo_bench.reports.study import ComparisonSetting, Study
from vcpo_bench.reports.symbols import typeset

_BY_NAME = {quantity.name: quantity for quantity in QUANTITIES}
_STACK = ("reward-steps", "ess-steps", "kl-steps", "grad-norm-steps")


def kernels(study: Study, sheet: Sheet) -> Plot:
    """VESPO Fig. 2: the factor phi of the gradient `phi(W) A grad log pi` against the weight W, by sign of A.

    clip: W where PPO's clip (0.2) keeps the gradient. TIS: min(W, 8). SAPO (2511.20347): 4 s (1 - s) W,
    s = sigmoid(tau (W - 1)), tau 1 and 1.05. VESPO: W^c1 e^(c2 (1 - W)), (c1, c2) = (2, 3) and (3, 2).
    """
    weight = np.linspace(0.0, 3.0, 121)
    lines = []
    for panel, positive in enumerate((True, False)):
        lines += [Line(panel, name, weight, phi(weight, positive)) for name, phi in _KERNELS.items()]
    methods = list(_KERNELS)
    figure, axes = panel_grid(sheet, 2, 2)
    draw_lines(axes, lines, methods)
    for one, label in zip(axes, _SIGNS, strict=True):
        one.set_title(label)
        one.set_xlabel("importance weight W")
    axes[0].set_ylabel("gradient factor")
    axes[0].set_ylim(0, 3)
    add_legend(figure, sheet, methods)
    caption = (
        "What each method makes of an importance weight: the factor of the gradient A grad log pi, in closed form, "
        "without any run."
    )
    title = "What does each method make of a weight?"
    return Plot("vespo-fig2-kernels", title, caption, figure, methods, lines, "weight", "factor", list(_SIGNS))


def _clip(weight: Array, positive: bool) -> Array:
    kept = weight <= 1.2 if positive else weight >= 0.8
    return np.where(kept, weight, 0.0)


def _tis(weight: Array, positive: bool) -> Array:
    return np.minimum(weight, 8.0)


def _sapo(weight: Array, positive: bool) -> Array:
    gate = 1 / (1 + np.exp(-(1.0 if positive else 1.05) * (weight - 1)))
    return 4 * gate * (1 - gate) * weight


def _vespo(weight: Array, positive: bool) -> Array:
    power, decay = (2.0, 3.0) if positive else (3.0, 2.0)
    return weight**power * np.exp(decay * (1 - weight))


_SIGNS = ("advantage above 0", "advantage below 0")
_KERNELS: dict[str, Callable[[Array, bool], Array]] = {"clip": _clip, "tis": _tis, "sapo": _sapo, "vespo": _vespo}


def results_stack(study: Study, sheet: Sheet) -> Plot | None:
    """VCPO's results figure: reward, ESS, KL, gradient norm (rows, on a slide columns) per task at the middle lag."""
    settings = _middle(study)
    if not settings:
        return None
    low = replace(sheet, panel_height=0.85 * sheet.panel_height)
    lying = len(_STACK) * low.panel_height > sheet.most_height  # on a slide quantities stand side by side
    places = [(_BY_NAME[name], setting) for name in _STACK for setting in settings]
    if lying:
        places = [(_BY_NAME[name], setting) for setting in settings for name in _STACK]
    columns = len(_STACK) if lying else len(settings)
    figure, axes = panel_grid(low, len(places), columns, share_y=False)
    lines, labels = [], []
    for index, (quantity, setting) in enumerate(places):
        found = lines_of(study, quantity, setting, index)
        lines += found
        labels.append(f"{setting.task}: {quantity.label}")
        above, beside = (quantity.label, setting.task) if lying else (setting.task, quantity.label)
        if index < columns:
            typeset(axes[index].set_title(above, fontsize=sheet.font_size - lying))
        if index % columns == 0:
            typeset(axes[index].set_ylabel(beside))
        if index + columns >= len(places):
            over_updates(axes[index])
    methods = [name for name in study.methods if any(line.name == name for line in lines)]
    draw_lines(axes, lines, methods)
    floors = [
        set_scale([axes[index]], [line for line in lines if line.panel == index], quantity)
        for index, (quantity, _) in enumerate(places)
    ]
    add_legend(figure, sheet, methods)
    title = "How do reward, ESS, divergence and gradient norm move together?"
    caption = f"{title} Lag {settings[0].lag}, lr {rate(settings[0].lr)}. {range_over_seeds(lines)}"
    caption += says_floor(max(floors)) + mark_zeros(axes, lines, methods)
    return Plot("vcpo-results-stack", title, caption, figure, methods, lines, "update", "value", labels)


def _middle(study: Study) -> list[ComparisonSetting]:
    """The settings of the middle positive lag at its largest learning rate, one per task."""
    lags = sorted({setting.lag for setting in study.settings if setting.lag > 0})
    if not lags:
        return []
    lag = lags[len(lags) // 2]
    lr = max(setting.lr for setting in study.settings if setting.lag == lag)
    found = [one for one in study.settings if (one.lag, one.lr) == (lag, lr)]
    return list({one.task: one for one in reversed(found)}.values())[::-1]


def lag_sweep(study: Study, sheet: Sheet) -> Plot | None:
    """VCPO's lag sweep: held-out reward of `vcpo` against update, a line per lag; None with fewer than two lags."""
    settings = [one for one in study.settings if len(study.runs(one, "vcpo"))]
    if len({one.lag for one in settings}) < 2:
        return None
    task, lr = settings[0].task, max(one.lr for one in settings if one.task == settings[0].task)
    chosen = [one for one in settings if (one.task, one.lr, one.regime) == (task, lr, settings[0].regime)]
    figure, (axes,) = panel_grid(sheet, 1, 1)
    lines = []
    for place, setting in enumerate(chosen):
        for line in lines_of(study, _BY_NAME["reward-steps"], setting, 0, ["vcpo"]):
            style = LAG_STYLES[place % len(LAG_STYLES)]
            name = f"lag {setting.lag}"
            if line.low is not None and line.high is not None:
                axes.fill_between(line.x, line.low, line.high, color=style.color, alpha=0.18, linewidth=0)
            axes.plot(
                line.x, line.y, color=style.color, linestyle=style.dash, marker=style.marker, markevery=5, label=name
            )
            lines.append(replace(line, name=name))
    if not lines:
        return None
    over_updates(axes)
    axes.set_ylabel("held-out reward")
    set_scale([axes], lines, _BY_NAME["reward-steps"])
    figure.legend(loc="outside upper center", ncols=min(len(chosen), 4))
    title = "How does vcpo learn as the lag grows?"
    caption = f"{title} Task {task}, lr {rate(lr)}. {range_over_seeds(lines)}"
    return Plot("vcpo-lag-sweep", title, caption, figure, [], lines, "update", "sampled_reward", [task])


def ablation(study: Study, sheet: Sheet) -> Plot | None:
    """VCPO's ablation: held-out reward of TIS, vcpo and its halves at the middle lag, a panel per task."""
    settings = _middle(study)
    arms = [name for name in study.methods if name == "tis" or base_name(name) == "vcpo"]
    lines = [
        line
        for index, setting in enumerate(settings)
        for line in lines_of(study, _BY_NAME["reward-steps"], setting, index, arms)
    ]
    drawn = [name for name in arms if any(line.name == name for line in lines)]
    if len([name for name in drawn if name != "tis"]) < 2:
        return None
    figure, axes = panel_grid(sheet, len(settings), len(settings))
    draw_lines(axes, lines, drawn)
    for panel, setting in zip(axes, settings, strict=True):
        panel.set_title(setting.task)
        over_updates(panel)
    axes[0].set_ylabel("held-out reward")
    set_scale(axes, lines, _BY_NAME["reward-steps"])
    add_legend(figure, sheet, drawn)
    title = "Which half of vcpo does the work?"
    caption = f"{title} Lag {settings[0].lag}, lr {rate(settings[0].lr)}. {range_over_seeds(lines)}"
    labels = [setting.task for setting in settings]
    return Plot("vcpo-fig9-ablation", title, caption, figure, drawn, lines, "update", "sampled_reward", labels)
