"""Leave out the stalest rows of every batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.interfaces import Admission
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Freshest(Admission):
    """Admit the `share` of the batch's rows with the smallest lag, and rows as fresh as the last of them.

    Unlike `max-lag`, it drops by rank: a batch of one age is kept whole, however old.
    """

    name: ClassVar[str] = "freshest"
    summary: ClassVar[str] = "the stalest quarter of each batch left out"
    reference: ClassVar[str] = "staleness-aware dropping in asynchronous trainers; control of this project"
    year: ClassVar[int] = 2026
    whole_groups: ClassVar[bool] = False
    sees: ClassVar[Scope] = Scope.BATCH
    reads: ClassVar[frozenset[str]] = frozenset({"version"})
    formula: ClassVar[str] = "admit rows with lag <= the (share n)-th smallest lag of the batch"
    share: float = number(0.75, minimum=0, maximum=1)

    def admit(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        never = torch.iinfo(torch.int64).max
        lag = torch.where(ev.rows.valid, ev.batch.lag(), never)
        ordered = lag.flatten(-2).sort(-1).values
        count = ev.rows.valid.flatten(-2).sum(-1, keepdim=True)
        last = torch.ceil(self.share * count.double() - 1e-9).long().clamp(min=1)
        return lag <= ordered.gather(-1, last - 1).unsqueeze(-1)
