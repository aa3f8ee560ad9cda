"""A baseline for every token, weighted by accumulated score norms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import POLICY_FIELDS, fields_of
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, flag, number


@dataclass(frozen=True, kw_only=True)
class Otb(Baseline):
    """Optimal token baseline: at every position the mean weighted by accumulated score norms (OTB 2602.07078).

    W_t = sum_{j<=t} (1 - 2 pi_j + sum_v pi_v^2) rho_j^2 stands for the squared score norm of the prefix; b_t is the
    mean of the rewards with these weights over the rows that reach t. Beyond the second longest row of a group, and
    for groups of one, the baseline is 0. `weights=on` multiplies by the squared token ratio, capped. Rows are
    compared column by column, or with `align=token` by how many tokens in play came before (several turns).
    """

    name: ClassVar[str] = "otb"
    summary: ClassVar[str] = "per-token baseline weighted by accumulated score norms"
    reference: ClassVar[str] = "OTB 2602.07078"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "A_t = R - sum_G W_t R / sum_G W_t, W_t = cumsum_t (1 - 2 pi + sum pi^2) rho^2"
    weights: bool = flag(False)
    cap: float = number(2.0, minimum=0)
    policy: str = choice("current", "proximal")
    align: str = choice("column", "token")

    @property
    def needs(self) -> frozenset[str]:
        """Squared probabilities, and the proximal policy if `policy` names it."""
        return fields_of(self.policy) | {"sum_pi_sq"}

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]`."""
        logp = ev.token_field(POLICY_FIELDS[self.policy])
        norm = 1 - 2 * logp.clamp(max=0.0).exp() + ev.token_field("sum_pi_sq")
        if self.weights:
            norm = norm * ev.ratio(self.policy, "behavior", 20.0).clamp(max=self.cap) ** 2
        importance = torch.where(ev.rows.mask, torch.where(ev.rows.mask, norm, 0.0).cumsum(-1), 0.0)
        place = None
        if self.align == "token":
            place = (ev.rows.mask.cumsum(-1) - 1).clamp(min=0)
            importance = torch.zeros_like(importance).scatter_add_(-1, place, importance)
        reward = ev.reward.to(importance.dtype).unsqueeze(-1)
        mean = (importance * reward).sum(-2, keepdim=True) / (importance.sum(-2, keepdim=True) + 1e-8)
        baseline = torch.where(self._alone(ev), 0.0, mean)
        if place is not None:
            baseline = baseline.gather(-1, place)
        return torch.where(ev.rows.mask, reward - baseline, 0.0)

    def _alone(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` bool: rows without others, and of the longest row what lies beyond the second longest."""
        if ev.rows.valid.shape[-1] == 1:
            return torch.ones_like(ev.rows.mask)
        longest, second = (each.unsqueeze(-1) for each in ev.rows.lengths.topk(2, dim=-1).values.unbind(-1))
        ahead = (ev.rows.lengths == longest) & (longest > second)
        beyond = torch.arange(ev.rows.mask.shape[-1], device=ev.rows.mask.device) >= second.unsqueeze(-1)
        counted = ev.rows.valid if self.align == "column" else ev.rows.nonempty
        single = counted.sum(-1, keepdim=True) <= 1
        return (ahead.unsqueeze(-1) & beyond) | single.unsqueeze(-1)
