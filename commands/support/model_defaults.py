"""What `vcpo-bench run` takes where a pretrained language model is trained and a flag is not given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import typer

from vcpo_bench.bench.cells.model_source import default_task, is_new
from vcpo_bench.commands.support.run_options import GridOptions
from vcpo_bench.commands.support.say import say_aside
from vcpo_bench.records.setting import settings_of
from vcpo_bench.records.settings import SETTINGS, CellSettings

LORA_LR = "1e-4"
"""Learning rate of adapters, whose weights start at zero."""


def with_model_defaults(
    ctx: typer.Context, grid: GridOptions, settings: CellSettings
) -> tuple[GridOptions, CellSettings]:
    """The options of a run, those that were not given as they suit its language model.

    The task is one that the model can learn. What `Setting.with_model` says holds for pretrained models only: one made
    by `vcpo-bench lab warmup --new` is small, and is trained like the built-in policies.
    """
    if not grid.model:
        return grid, settings
    axes: dict[str, Any] = {}
    own: dict[str, Any] = {}
    if _free(ctx, "task"):
        axes["task"] = default_task(grid.model)
        say_aside(f"no --task is given: {axes['task']}; vcpo-bench ls tasks says which suit a model")
    if not is_new(grid.model):
        table = settings_of(CellSettings)
        own = {s.name: s.with_model for s in table.values() if s.with_model is not None and _free(ctx, s.parameter)}
        ctx.params.update({table[name].parameter: value for name, value in own.items()})
        if _free(ctx, "lr"):
            axes["lr"] = LORA_LR if settings.lora else f"{SETTINGS['lr'].with_model:g}"
    ctx.params.update(axes)
    return replace(grid, **axes), replace(settings, **own)


def _free(ctx: typer.Context, parameter: str) -> bool:
    """Whether neither the command line nor a configuration file gives a parameter."""
    source = ctx.get_parameter_source(parameter)
    return source is not None and source.name == "DEFAULT"
