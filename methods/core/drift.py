"""How far the weights have moved: what step rules make of the distances that a learner measures."""

from __future__ import annotations

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import ROW_AXES
from vcpo_bench.methods.core.errors import MissingEvidence
from vcpo_bench.methods.core.view import EvidenceView


def update_norm(ev: EvidenceView) -> Tensor:
    """Leading shape: norm of the last change of the weights at the full learning rate; 0 before the first.

    Raises:
        MissingEvidence: The batch does not carry it.
    """
    if ev.batch.update_norm is None:
        raise MissingEvidence("this method needs update_norm, which the batch does not carry")
    logp = ev.batch.logp
    return torch.as_tensor(ev.batch.update_norm, dtype=logp.dtype, device=logp.device).expand(ev.batch.leading)


def over_rows(ev: EvidenceView, value: Tensor, of: str) -> Tensor:
    """Leading shape: the largest or the mean of `[..., P, G]` over the rows with tokens in play; 0 without any.

    Args:
        ev: The evidence.
        value: One number per row, 0 or more.
        of: `max` or `mean`.
    """
    rows = ev.rows.nonempty
    inside = torch.where(rows, value.to(ev.batch.logp.dtype), 0.0)
    if of == "max":
        return inside.amax(ROW_AXES)
    return inside.sum(ROW_AXES) / rows.sum(ROW_AXES).clamp(min=1)


def remembered(ev: EvidenceView, name: str, start: float) -> Tensor:
    """Leading shape: a number that the method kept as state, `start` at its first update."""
    logp = ev.batch.logp
    before = ev.batch.state.get(name)
    return logp.new_full(ev.batch.leading, start) if before is None else before.to(logp)
