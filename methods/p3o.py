"""P3O: the effective sample size as cap, and as weight of a pull toward the behavior policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.batch import BATCH_AXES, fields_of
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class P3o(RatioMethod):
    """c = A min(r, e) - (1 - e)(1 - e^(-log r)), e the normalized ESS over the tokens of the batch (2605.12380).

    No hyperparameters. `trust=mixture` is the same repository's P4O: e is the smaller of the two ESS against
    behavior and proximal policy, and the pull is toward their mixture.
    """

    name: ClassVar[str] = "p3o"
    summary: ClassVar[str] = "token ratio capped at the batch's ESS ratio, k3 pull weighted by 1 - ESS"
    reference: ClassVar[str] = "P3O 2605.12380"
    year: ClassVar[int] = 2026
    pulls: ClassVar[bool] = True
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "c = A min(r, e) - (1-e)(1 - 1/r), e = (sum r)^2/(n sum r^2) over tokens"
    differences: ClassVar[tuple[str, ...]] = (
        "authors' code turns an ESS that is not a number into 1 (full step); here 0",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)+token-mean"
    trust: str = choice("behavior", "mixture")

    def own_needs(self) -> frozenset[str]:
        """The proximal policy, for the mixture."""
        return super().own_needs() | fields_of("proximal" if self.trust == "mixture" else self.anchor)

    def terms(self, ev: EvidenceView) -> Terms:
        """The capped ratio and the pull."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        ess = self._ess(ev, self.anchor)
        if self.trust == "behavior":
            distance = ev.log_ratio("current", self.anchor, self.clamp)
        else:
            other = self._ess(ev, "proximal")
            distance = self._to_mixture(ev, 1 - ess, 1 - other)
            ess = torch.minimum(ess, other)
        pull = 1 - torch.exp(-distance)
        low, high = torch.aminmax(distance)
        if float(low) < -10.0 or float(high) > 10.0:  # the authors clamp the exponent: only the linear term is left
            pull = torch.where(distance.abs() > 10.0, 1.0, pull)
        weight = torch.minimum(ratio, ess)
        return Terms(weight=weight, addend=pull * (ess - 1), capped=ratio > ess)

    def _ess(self, ev: EvidenceView, anchor: str) -> Tensor:
        """`[..., 1, 1, 1]` ESS over tokens / number of tokens."""
        logs = ev.log_ratio("current", anchor, self.clamp)
        top = logs.amax(BATCH_AXES, keepdim=True)  # masked tokens count as 0: at worst the shift is larger than needed
        weight = (logs - top).exp() * ev.rows.mask_float
        total, squares = weight.sum(BATCH_AXES, keepdim=True), (weight * weight).sum(BATCH_AXES, keepdim=True)
        count = ev.rows.tokens[..., None, None, None]
        return total * total / (count * squares).clamp(min=torch.finfo(total.dtype).tiny)

    def _to_mixture(self, ev: EvidenceView, behavior: Tensor, proximal: Tensor) -> Tensor:
        """`[..., P, G, T]` log pi - log of the mixture of behavior and proximal policy by these weights."""
        total = (behavior + proximal).clamp(min=1e-30)
        near = -ev.log_ratio("current", "behavior", self.clamp) + (behavior + 1e-30).log()
        other = -ev.log_ratio("current", "proximal", self.clamp) + (proximal + 1e-30).log()
        mixed = torch.logaddexp(near, other) - total.log()
        return torch.where(behavior + proximal > 1e-6, -mixed, 0.0)
