"""What `--dry-run --device cuda` shows for a language model: cells, memory and time, without model, data or GPU."""

from __future__ import annotations

from dataclasses import replace

from vcpo_bench.bench.cells.grid import GridSpec, plan_grid
from vcpo_bench.bench.cells.model_source import LanguageModel
from vcpo_bench.bench.machine.gpu_estimate import Workload, describe
from vcpo_bench.bench.machine.model_shapes import model_shape
from vcpo_bench.bench.samplers.catalog import SAMPLERS
from vcpo_bench.bench.tasks.text import text_task

_STAND_IN = "chain(64)"


def gpu_plan(spec: GridSpec, model: LanguageModel) -> list[str]:
    """Labels of the cells and the estimate for each GPU type, as lines for people.

    The cells are those of the same grid on a task in tokens, which needs neither the model nor its data.

    Args:
        spec: The grid.
        model: Its language model.

    Raises:
        UsageError: An axis cannot be used, a task is unknown, or the size of the model cannot be found out.
    """
    shape = model_shape(model.source)
    tasks = [text_task(text) for text in spec.tasks]
    cells = plan_grid(replace(spec, model=None, tasks=(_STAND_IN,), device="cpu"))
    lines = [cell.config.model_copy(update={"task": text}).label for text in spec.tasks for cell in cells]
    work = Workload(
        prompts=spec.prompts,
        responses=spec.responses,
        response_tokens=model.max_response or max(task.max_response for task in tasks),
        dtype=model.dtype,
        lora=model.lora,
        checkpointing=model.checkpointing,
        micro_tokens=model.micro_tokens,
        slots=SAMPLERS.parse(model.sampler).at_once,
    )
    return [*lines, f"{len(lines)} cells, one after another", *describe(shape, work, len(lines) * spec.steps)]
