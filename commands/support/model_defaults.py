"""What `vcpo-bench run` takes where a pretrained language model is trained and a flag is not given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from vcpo_bench.bench.cells.model_source import default_task, is_new
from vcpo_bench.commands.support.run_options import ExecutionOptions, GridOptions
from vcpo_bench.commands.support.say import say_aside
from vcpo_bench.errors import UsageError
from vcpo_bench.records import CELLS, PARTIAL_SUFFIX
from vcpo_bench.records.setting import settings_of
from vcpo_bench.records.settings import SETTINGS, CellSettings

if TYPE_CHECKING:
    from vcpo_bench.bench.cells.grid_spec import GridSpec

SEEDS = "3"
"""A cell takes minutes or hours. Three decide nothing, and the end of the run says so."""

LORA_LR = "1e-4"
"""Learning rate of adapters, whose weights start at zero."""

GRAPH = "graph"
"""Sampler on a GPU: four times as fast as `torch` and more (docs/studies/gpu-sampling). With adapters no GPU ran it."""


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
        if _free(ctx, "seeds"):
            axes["seeds"] = SEEDS
        if _free(ctx, "lr"):
            axes["lr"] = LORA_LR if settings.lora else f"{SETTINGS['lr'].with_model:g}"
    own_loop = settings.trainer == CellSettings.trainer and not settings.lora
    if grid.device != "cpu" and own_loop and _free(ctx, "sampler"):
        ctx.params["sampler"] = own["sampler"] = GRAPH
    ctx.params.update(axes)
    return replace(grid, **axes), replace(settings, **own)


def with_fitting_passes(ctx: typer.Context, spec: GridSpec, how: ExecutionOptions, here: bool) -> GridSpec:
    """The grid, with `--micro-tokens` as large as memory allows, where it is not given and the model is pretrained.

    It is decided once: cells that `--out` has already, also those that were interrupted, keep what they began with.

    Args:
        ctx: Of `vcpo-bench run`.
        spec: What was asked for.
        how: Where and how its cells run.
        here: On this machine; of others the free memory is not known.

    Raises:
        UsageError: The grid cannot be planned.
    """
    if not spec.model or is_new(spec.model) or not _free(ctx, "micro_tokens"):
        return spec
    tokens = _begun_with(spec, how.out) or (_fitting(spec, how.jobs) if here else 0) or spec.settings.micro_tokens
    ctx.params["micro_tokens"] = tokens
    return _cut(spec, tokens)


def _cut(spec: GridSpec, tokens: int) -> GridSpec:
    return replace(spec, settings=replace(spec.settings, micro_tokens=tokens))


def _begun_with(spec: GridSpec, out: Path) -> int:
    """The size of passes of those cells of a grid that a folder has; 0: it has none."""
    from vcpo_bench.bench.cells.grid import plan_grid
    from vcpo_bench.bench.machine.gpu_estimate import PASSES

    there = {folder.name.removesuffix(PARTIAL_SUFFIX) for folder in (out / CELLS).glob("*")}
    of_grid = (tokens for tokens in PASSES if there & {cell.key for cell in plan_grid(_cut(spec, tokens))})
    return next(of_grid, 0) if there else 0


def _fitting(spec: GridSpec, jobs: int) -> int:
    """The largest passes for which each cell that runs at once has memory; 0 where that is not known."""
    from vcpo_bench.bench.cells.grid import plan_grid
    from vcpo_bench.bench.devices import free_gpu_memory
    from vcpo_bench.bench.machine.gpu_estimate import fitting_pass
    from vcpo_bench.bench.machine.gpu_plan import workload
    from vcpo_bench.bench.machine.model_shapes import model_shape
    from vcpo_bench.bench.running.pool.memory import available_gib
    from vcpo_bench.bench.running.run_grid import worker_count

    try:
        shape = model_shape(spec.model)
    except UsageError:  # of another family
        return 0
    at_once = min(worker_count(jobs, spec.device, spec.parts.sampler), len(plan_grid(spec)))
    if spec.device == "cpu":
        free = 2**30 * (available_gib() or 0) / at_once
    else:
        gpus = worker_count(0, spec.device)
        free = (free_gpu_memory() or 0) / -(-at_once // gpus)
    work = workload(spec)
    kept = work.moments + 2 * (spec.settings.record != "basic")  # the last gradient, and this one, in one piece each
    return fitting_pass(shape, replace(work, moments=kept), free) if free else 0


def _free(ctx: typer.Context, parameter: str) -> bool:
    """Whether neither the command line nor a configuration file gives a parameter."""
    source = ctx.get_parameter_source(parameter)
    return source is not None and source.name == "DEFAULT"
