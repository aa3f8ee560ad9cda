"""What aggregations divide by: the rows and tokens that count."""

from __future__ import annotations

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import ROW_AXES
from vcpo_bench.methods.core.view import EvidenceView


def to_row_shape(value: Tensor) -> Tensor:
    """Leading shape to `[..., 1, 1]`."""
    return value[..., None, None]


def rows_in_denominator(ev: EvidenceView, empty: str) -> Tensor:
    """`[..., 1, 1]` rows in the denominator, at least 1, in the dtype of `logp`.

    Args:
        ev: The evidence.
        empty: `counted`: all valid rows; `skipped`: those with tokens in play.
    """
    counted = ev.rows.valid if empty == "counted" else ev.rows.has_tokens
    return counted.sum(ROW_AXES, keepdim=True).clamp(min=1).to(ev.batch.logp.dtype)


def where_tokens(ev: EvidenceView, value: Tensor) -> Tensor:
    """`[..., P, G]` the value where a row has tokens in play, else 0, in the dtype of `logp`."""
    return torch.where(ev.rows.has_tokens, value, 0.0).to(ev.batch.logp.dtype)
