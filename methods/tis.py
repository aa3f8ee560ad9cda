"""Truncated importance sampling of whole sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import WeightMethod
from vcpo_bench.methods.core.batch import BATCH_AXES
from vcpo_bench.methods.core.ratios import log_of, outside, segment_mean
from vcpo_bench.methods.core.reach import Reach, Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Tis(WeightMethod):
    """c = A min(u, cap), u the product of token ratios of the row (`level=sequence`), detached.

    `level=token` truncates every token ratio, `geometric` the length-normalized product, `segment` the
    geometric mean over each run of tokens in play (a turn). Logarithms are clamped as a whole. `low` truncates
    from below; `normalize=on` divides by the mean weight of the batch after truncation, in log space and without the
    lower clamp, so that weights that are all tiny are still normalized; `counted` lets rows without tokens count in
    that mean, as zeros (slime). Unbiased only with `seq-mean-token-sum`, before truncation.
    """

    name: ClassVar[str] = "tis"
    summary: ClassVar[str] = "detached product of token ratios per row, capped at 8"
    reference: ClassVar[str] = "Yao et al. 2025; VCPO 2602.17616"
    year: ClassVar[int] = 2025
    known_as: ClassVar[tuple[str, ...]] = ("off-policy-tis", "sequence-truncate")
    formula: ClassVar[str] = "c = A min(w, cap), w = prod_t r_t"
    differences: ClassVar[tuple[str, ...]] = (
        "cap: 2 verl, 8 VCPO, 5 SkyRL, 3 TRL",
        "'sequence' is the geometric mean in AReaL, open-instruct and ms-swift (level=geometric)",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)"
    level: str = choice("sequence", "token", "geometric", "segment")
    cap: float = number(8.0, minimum=0)
    low: float = number(0.0, minimum=0)
    normalize: str = choice("off", "on", "counted")

    @property
    def own_revision(self) -> int:
        """One more where it normalizes: tiny weights were clamped, or left as they were."""
        return super().own_revision + (self.normalize != "off")

    @property
    def reach(self) -> Reach:
        """All rows, whose mean it is divided by where it normalizes."""
        return Reach(Scope.ROW if self.normalize == "off" else Scope.BATCH)

    def log_weight(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, 1|T]` clamped logarithm of the ratio at this level, before truncation."""
        least = -self.clamp if self.normalize == "off" else None
        if self.level == "token":
            if least is None:
                return ev.pair(self.of, self.anchor).raw.clamp(max=self.clamp)
            return ev.log_ratio(self.of, self.anchor, self.clamp)
        if self.level == "segment":
            return segment_mean(ev.pair(self.of, self.anchor).raw, ev.rows.mask).clamp(least, self.clamp)
        ratio = ev.pair(self.of, self.anchor)
        row = ratio.row_mean_log if self.level == "geometric" else ratio.row_log
        return row.clamp(least, self.clamp).unsqueeze(-1)

    def weight(self, ev: EvidenceView) -> Tensor:
        """Truncated in log space, so that no cap meets an infinity."""
        logs = self.log_weight(ev)
        low, high = log_of(self.low), log_of(self.cap)
        if self.normalize != "off":
            return self._normalized(ev, logs.clamp(low, high))
        return logs.clamp(low, high).exp()

    def capped(self, ev: EvidenceView) -> Tensor | None:
        """Where `low` or `cap` changes the weight."""
        if self.level == "token":
            return ev.pair(self.of, self.anchor).outside(log_of(self.low), log_of(self.cap))
        return outside(self.log_weight(ev), self.low, self.cap)

    def _normalized(self, ev: EvidenceView, logs: Tensor) -> Tensor:
        """Weights with these logarithms, divided by their mean over the tokens or rows in play."""
        inside = ev.rows.has_tokens.unsqueeze(-1) if logs.shape[-1] == 1 else ev.rows.mask
        top = torch.where(inside, logs, -torch.inf).amax(BATCH_AXES, keepdim=True).nan_to_num(0.0, 0.0, 0.0)
        weight = torch.where(inside, (logs - top).exp(), 0.0)
        rows = logs.shape[-1] == 1 and self.normalize == "counted"
        count = (ev.rows.valid.unsqueeze(-1) if rows else inside).sum(BATCH_AXES, keepdim=True)
        mean = weight.sum(BATCH_AXES, keepdim=True) / count.clamp(min=1)
        return weight / torch.where(mean > 0, mean, 1.0)
