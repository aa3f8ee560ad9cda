"""The dry run of a grid on a GPU: cells, memory and time of a language model, without model, data or GPU."""

from __future__ import annotations

from dataclasses import replace

from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.machine.gpu_estimate import Workload, describe
from vcpo_bench.bench.machine.model_shapes import model_shape
from vcpo_bench.bench.tasks.text import text_task

_STAND_IN = "chain(64)"


def workload(spec: GridSpec) -> Workload:
    """What an update of a grid's cells does, by the longest response of its tasks."""
    settings = spec.settings
    return Workload(
        prompts=settings.prompts,
        responses=settings.responses,
        response_tokens=settings.max_response or max(text_task(text).max_response for text in spec.tasks),
        dtype=settings.dtype,
        lora=settings.lora,
        checkpointing=settings.checkpointing,
        micro_tokens=settings.micro_tokens,
        slots=spec.parts.sampler.at_once,
        moments=spec.parts.optimizer.moments,
        layer_seconds=spec.parts.sampler.layer_seconds,
        keeps=spec.parts.sampler.keeps,
    )


def gpu_plan(spec: GridSpec) -> list[str]:
    """Labels of the cells and the estimate for each GPU type, as lines of text.

    The cells are planned on a token task, which needs neither the model nor its data.

    Args:
        spec: The grid; it must name a language model.

    Raises:
        UsageError: An axis cannot be used, a task is unknown, or the size of the model is unknown.
    """
    settings, shape = spec.settings, model_shape(spec.model)
    stand_in = replace(spec, model="", settings=settings.without_language_model(), tasks=(_STAND_IN,), device="cpu")
    cells = plan_grid(stand_in)
    lines = [replace(cell.config, task=text).label for text in spec.tasks for cell in cells]
    work = workload(spec)
    return [*lines, f"{len(lines)} cells, one after another", *describe(shape, work, len(lines) * settings.steps)]
