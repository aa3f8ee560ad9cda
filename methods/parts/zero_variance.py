"""Leave out groups whose rewards are all equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.group_statistics import TINY, group_std
from vcpo_bench.methods.core.interfaces import Admission
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView


@dataclass(frozen=True, kw_only=True)
class ZeroVariance(Admission):
    """Leave out groups whose rewards are all equal (dynamic sampling, DAPO 2503.14476)."""

    name: ClassVar[str] = "zero-variance"
    summary: ClassVar[str] = "groups with equal rewards left out"
    reference: ClassVar[str] = "DAPO 2503.14476"
    year: ClassVar[int] = 2025
    sees: ClassVar[Scope] = Scope.GROUP
    reads: ClassVar[frozenset[str]] = frozenset({"reward"})
    formula: ClassVar[str] = "admit groups with std_G R > 0"
    differences: ClassVar[tuple[str, ...]] = ("frameworks refill the batch; here the batch only gets smaller",)
    host: ClassVar[str] = "clip-higher"

    def admit(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        return (group_std(ev) > TINY).expand_as(ev.rows.valid)
