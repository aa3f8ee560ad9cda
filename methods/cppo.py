"""CPPO: a mask on the moved probability, stricter early in the row, and a budget for the prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.batch import POLICY_FIELDS
from vcpo_bench.methods.core.ratios import log_of
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Cppo(RatioMethod):
    """c = A min(r, cap) where the token moves back, or w_t D_t <= min(delta, delta + b W - S) (CPPO 2606.10968).

    D = |p - q|, p and q the probabilities under current and anchor (the paper's runs sum over the 20 likeliest tokens).
    The position weight w falls linearly from 1 to `floor` over the row, or with `horizon=padded` over all positions
    (equation 9). W and S are the sums of w and of w D over the tokens before, rejected ones included (equation 8). The
    budget per token is b = clip(scale quantile_row(D), budget, ceiling budget) (equation 22); A (r - 1) <= 0 is back.
    """

    name: ClassVar[str] = "cppo"
    summary: ClassVar[str] = "token ratio capped at 20, off where the weighted shift exceeds what the prefix has left"
    reference: ClassVar[str] = "CPPO 2606.10968"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A min(r, cap), 0 where A(r-1) > 0 and w_t |p-q| > min(delta, delta + b W_<t - S_<t)"
    differences: ClassVar[tuple[str, ...]] = (
        "delta: 0.15 for dense models, 0.2 for mixtures of experts (paper, table 3)",
        "ceiling of the budget: 2 in the paper's equation 22, 5 in a port's reference",
        "position: over the row in the paper and in UniRL, over the padded length in the port for verl",
        "a row of one token: weight 1, as in UniRL; `floor` with horizon=padded in a batch that is one token wide",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)+seq-mean-token-sum-norm"
    delta: float = number(0.15, minimum=0)
    floor: float = number(0.8, minimum=0, maximum=1)
    budget: float = number(0.02, minimum=0)
    quantile: float = number(0.9, minimum=0, maximum=1)
    scale: float = number(1.0, minimum=0)
    ceiling: float = number(2.0, minimum=1)
    cap: float = number(20.0, minimum=0)
    horizon: str = choice("row", "padded")

    @property
    def own_revision(self) -> int:
        """2 over the row: one of a single token had the weight of a last one."""
        return 2 if self.horizon == "row" else 1

    def terms(self, ev: EvidenceView) -> Terms:
        """The capped ratio with the tokens beyond their allowance at zero."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        back = ev.advantage * (ratio - 1) <= 0
        kept = back | self._within_budget(ev)
        capped = ev.pair("current", self.anchor).outside(-torch.inf, log_of(self.cap))
        return Terms(weight=ratio.clamp(max=self.cap), kept=kept, capped=capped)

    def _within_budget(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` bool, where the weighted shift is at most what the token may spend."""
        p, q = (ev.token_field(name).clamp(max=0.0).exp_() for name in ("logp", POLICY_FIELDS[self.anchor]))
        moved = p.sub_(q).abs_().mul_(ev.rows.mask_float)
        position = self._position_weight(ev)
        spent = position * moved
        allowance = self._budget(ev, moved) * _before(position) - _before(spent)
        return spent <= self.delta + allowance.clamp(max=0.0)

    def _position_weight(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` from 1 down to `floor`; 0 at masked tokens."""
        mask = ev.rows.mask_float
        if self.horizon == "padded":
            place = torch.arange(1, mask.shape[-1] + 1, dtype=mask.dtype, device=mask.device)
            length = mask.new_full((), mask.shape[-1])
        else:
            place, length = mask.cumsum(-1), ev.rows.lengths.unsqueeze(-1)
        left = (length - place) / (length - 1).clamp(min=1)
        if self.horizon == "row":
            left = torch.where(length > 1, left, 1.0)  # the only token is the first
        return (self.floor + (1 - self.floor) * left) * mask

    def _budget(self, ev: EvidenceView, moved: Tensor) -> Tensor:
        """`[..., P, G, 1]` b; the smallest one for rows without tokens."""
        found = torch.where(ev.rows.mask, moved, torch.nan).nanquantile(self.quantile, -1, keepdim=True)
        return (self.scale * found).nan_to_num(0.0).clamp(self.budget, self.ceiling * self.budget)


def _before(value: Tensor) -> Tensor:
    """Sum over the tokens before each one, along the last axis."""
    return torch.nn.functional.pad(value[..., :-1], (1, 0)).cumsum(-1)
