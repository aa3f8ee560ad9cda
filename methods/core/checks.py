"""Values of the evidence that no method can use: not numbers, too large, or negative where that cannot be."""

from __future__ import annotations

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import Batch
from vcpo_bench.methods.core.errors import BatchError, NonFiniteEvidence


def bounded(batch: Batch, name: str, value: Tensor, limit: float) -> Tensor:
    """The values of a field, checked.

    Args:
        batch: The batch, which names its rows.
        name: The field.
        value: `[..., P, G]` or `[..., P, G, T]`, zero where nothing counts.
        limit: Largest size.

    Raises:
        NonFiniteEvidence: One is not finite.
        BatchError: One is larger than the limit.
    """
    if not float(value.abs().amax()) <= limit:  # also where it is not a number
        bad = (~torch.isfinite(value)).nonzero()
        if len(bad):
            row = tuple(bad[0].tolist()[: batch.valid.dim()])
            raise NonFiniteEvidence(name, row, batch.place_of(row))
        _refuse(batch, name, value, value.abs() > limit, f"is beyond {limit:g} in size: scale it down")
    return value


def not_negative(batch: Batch, name: str, value: Tensor) -> Tensor:
    """The values of a field, checked.

    Args:
        batch: The batch, which names its rows.
        name: The field.
        value: `[..., P, G]` or `[..., P, G, T]`, zero where nothing counts.

    Raises:
        BatchError: One is below 0.
    """
    if float(value.amin()) < 0:
        what = "squared norm" if name.endswith("_sq") else "distance"
        _refuse(batch, name, value, value < 0, f"is no {what}: it must be 0 or more")
    return value


def finite_where(batch: Batch, names: tuple[str, ...], mask: Tensor) -> None:
    """Check log-probabilities or other fields of tokens, and the difference of the first two.

    Args:
        batch: The batch, which carries these fields.
        names: Which fields.
        mask: `[..., P, G, T]` bool, the tokens that count.

    Raises:
        NonFiniteEvidence: Naming the field and the first row with a token that counts and is not finite.
    """
    values = [getattr(batch, name) for name in names]
    if len(names) > 1:  # finite numbers whose difference is not
        names, values = (*names, f"{names[0]} - {names[1]}"), [*values, values[0] - values[1]]
    for name, value in zip(names, values, strict=True):
        bad = (~torch.isfinite(value) & mask).any(-1).nonzero()
        if len(bad):
            row = tuple(bad[0].tolist())
            raise NonFiniteEvidence(name, row, batch.place_of(row))


def _refuse(batch: Batch, name: str, value: Tensor, bad: Tensor, problem: str) -> None:
    place = tuple(bad.nonzero()[0].tolist())
    row = batch.place_of(place[: batch.valid.dim()])
    raise BatchError(f"{name} of {row} is {float(value[place]):.3g}, which {problem}")
