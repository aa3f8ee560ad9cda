"""From a cell to what it trains: the task and the start policy, embedded or a language model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vcpo_bench.bench.devices import checked_device
from vcpo_bench.bench.policies.base import Model
from vcpo_bench.bench.policies.tiny.warm_start import load_warm_start
from vcpo_bench.bench.samplers.base import InflightSampler, parse_sampler
from vcpo_bench.bench.tasks import EmbeddedTask, Task, get_task
from vcpo_bench.bench.tasks.text import get_text_task
from vcpo_bench.errors import UsageError

if TYPE_CHECKING:
    from vcpo_bench.bench.cells.config import CellConfig
    from vcpo_bench.bench.training.imitation_hf import Warmed


def open_task(config: CellConfig, start: Path | None) -> Task:
    """The task of a cell; one in words is bound to the tokenizer of its language model.

    Args:
        config: The cell.
        start: Folder of the language model; None or a file for an embedded policy.

    Raises:
        UsageError: The task is unknown, or needs a language model, or the other way round.
    """
    if not config.model:
        return get_task(config.task)
    with _extra():
        from vcpo_bench.bench.policies.hf import loading
    return loading.open_task(config, _folder(config, start))


def longest_response(config: CellConfig) -> int:
    """Longest response of a cell in tokens; its language model need not be at hand.

    Raises:
        UsageError: The task is unknown.
    """
    if not config.model:
        return get_task(config.task).max_response
    return config.max_response or get_text_task(config.task).max_response


def open_model(config: CellConfig, task: Task, start: Path | None, device: str = "cpu") -> Model:
    """The start policy of a cell, on a device (`cpu`, `cuda`, `cuda:1`).

    Raises:
        UsageError: It cannot be loaded, or the device is not there.
    """
    if not config.model:
        assert isinstance(task, EmbeddedTask)
        return load_warm_start(task, start).to(checked_device(device))
    with _extra():
        from vcpo_bench.bench.policies.hf import loading
    return loading.open_model(config, task, _folder(config, start), device)


def open_sampler(config: CellConfig, task: Task, policy: Model) -> InflightSampler | None:
    """The inference engine that samples for a cell; None: the policy itself does.

    Raises:
        UsageError: vLLM is not installed, or the cell cannot be sampled by it.
    """
    if not parse_sampler(config.sampler).name.startswith("vllm"):
        return None
    with _extra():
        from vcpo_bench.bench.cells import opening_vllm as opening
    return opening.open_sampler(config, task, policy)


def warm_up_model(
    task: str,
    out: Path,
    model: str,
    new: str,
    seed: int,
    target: float,
    device: str,
    progress: Callable[[int, float], None],
) -> Warmed:
    """See `hf.warm.warm_up_model`.

    Raises:
        UsageError: As there, or the extra packages are missing.
    """
    with _extra():
        from vcpo_bench.bench.training import imitation_hf as warm
    return warm.warm_up_model(task, out, model, new, seed, target, device, progress)


@contextmanager
def _extra() -> Iterator[None]:
    """Say in one line which packages an import inside the block needs."""
    try:
        yield
    except ImportError as error:
        raise UsageError(
            f"language models need more packages ({error.name} is missing): pip install 'vcpo-bench[hf]'"
        ) from error


def _folder(config: CellConfig, start: Path | None) -> Path:
    if start is None:
        raise UsageError(f"the cell trains the language model {config.model}: say where it is with --model")
    return start
