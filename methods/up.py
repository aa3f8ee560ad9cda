"""UP: no ratio and no clip for positive advantages, PPO's clip for the others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import torch
from vcpo_bench.methods.clip import Clip
from vcpo_bench.methods.core.masking import as_number
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Up(Clip):
    """c = A for A > 0; A r for A <= 0, 0 where r < 1 - low or r > cap (UP 2607.06987, equation 15).

    Anchored at the current policy itself, the ratio is 1 and its gradient that of log pi. `high` never acts.
    """

    name: ClassVar[str] = "up"
    summary: ClassVar[str] = "plain gradient for positive advantages, clipped ratio for negative ones"
    reference: ClassVar[str] = "UP 2607.06987"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A if A>0, A r if A<=0 and 1-low <= r <= cap, else 0"
    differences: ClassVar[tuple[str, ...]] = (
        "ceiling on the ratio where A < 0: clip_ratio_c, 3, in verl (cap=3); none in TRL's UPTrainer but for delta",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)+token-mean"
    cap: float = number(math.inf, minimum=1)

    def terms(self, ev: EvidenceView) -> Terms:
        """The plain gradient, and PPO's."""
        terms = super().terms(ev)
        assert terms.weight is not None
        assert terms.kept is not None
        pushed_up = ev.advantage > 0
        kept = terms.kept
        if math.isfinite(self.cap):
            kept = kept * as_number(terms.weight <= self.cap, kept.dtype)
        return Terms(
            weight=torch.where(pushed_up, 1.0, terms.weight),
            kept=torch.where(pushed_up, 1.0, kept.expand_as(terms.weight)),
        )
