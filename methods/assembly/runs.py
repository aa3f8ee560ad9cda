"""Several runs along a leading axis, asked about one at a time.

What ships sums over the axes of one run only. A plug-in that takes `.mean()` of everything would mix them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import Batch
from vcpo_bench.methods.core.errors import MethodError
from vcpo_bench.methods.core.update import Update


def run_by_run(method: Callable[[Batch], Update], batch: Batch) -> Update:
    """The update of a batch with a leading axis, from one call for each run; further axes are for the calls."""
    updates = [method(run) for run in _runs(batch)]
    return Update(
        coefficients=torch.stack([one.coefficients for one in updates]),
        step_scale=torch.stack([one.step_scale for one in updates]),
        entropy_coefficients=_stacked([one.entropy_coefficients for one in updates]),
        vocabulary_coefficients=_stacked([one.vocabulary_coefficients for one in updates]),
        state=_by_name([one.state for one in updates]),
        metrics=_by_name([one.metrics for one in updates]),
    )


def _runs(batch: Batch) -> Iterator[Batch]:
    given = {each.name: getattr(batch, each.name) for each in fields(batch)}
    for index in range(batch.leading[0]):
        yield replace(batch, **{name: _of_run(value, index) for name, value in given.items()})


def _of_run(value: Any, index: int) -> Any:
    if isinstance(value, Mapping):
        return {name: _of_run(each, index) for name, each in value.items()}
    return value[index] if isinstance(value, torch.Tensor) and value.dim() else value


def _stacked(values: Sequence[Tensor | None]) -> Tensor | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return torch.stack([torch.zeros_like(known[0]) if value is None else value for value in values])


def _by_name(values: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    common = set(values[0]).intersection(*values)
    if sometimes := set().union(*values) - common:
        raise MethodError(f"{sorted(sometimes)[0]} is written for some runs only; write it in every call")
    return {name: torch.stack([each[name] for each in values]) for name in values[0]}
