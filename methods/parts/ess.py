"""A step that shrinks with the effective sample size of the sequence weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.ess import ess_ratio_of_logs
from vcpo_bench.methods.core.interfaces import Step
from vcpo_bench.methods.core.ratios import log_of
from vcpo_bench.methods.core.reach import Reach, Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class EssStep(Step):
    """Learning rate scaled by the effective sample size of the raw sequence weights (VCPO 2602.17616, equation 5).

    scale = max(floor, min(1, rho / base)^p), p = 1/2 (`rule=sqrt`) or 1 (`rule=linear`). Rows without a token in play
    do not count. `cap` truncates the weights first. `space=raw` is the released code: those rows count with weight 1,
    weights are exponentiated as they are, 1e-8 is added to the sum of squares, and a statistic that is not a number
    leaves the step at its full size.
    `base=measured` takes as base a running mean (weight 0.1) of the ratio over the batches whose every row has
    lag 0, 1 until the first of them: below 1 when sampler and trainer disagree at equal weights.
    """

    name: ClassVar[str] = "ess"
    summary: ClassVar[str] = "step shrinks with the effective sample size of the sequence weights"
    reference: ClassVar[str] = "VCPO 2602.17616"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "scale = min(1, rho/base)^p; rho = (sum w)^2 / (B sum w^2), w = prod_t pi/mu"
    rule: str = choice("sqrt", "linear")
    base: float | str = number(1.0, minimum=1e-8, words=("measured",))
    floor: float = number(0.0, minimum=0, maximum=1)
    space: str = choice("log", "raw")
    cap: float = number(math.inf, minimum=0)

    @property
    def anchors(self) -> dict[str, str]:
        """The weights are current over behavior, never truncated."""
        return {"ess weights": "behavior"}

    @property
    def reach(self) -> Reach:
        """All rows; a measured base reads versions."""
        return Reach(Scope.BATCH, frozenset({"version"} if self.base == "measured" else ()))

    def scale(self, ev: EvidenceView) -> Tensor:
        """Leading shape, in [floor, 1]."""
        logs = ev.pair().row_log.clamp(max=log_of(self.cap))
        raw = self.space == "raw"
        ratio = _released_ratio(logs, ev.rows.valid) if raw else ess_ratio_of_logs(logs, ev.rows.weighted)
        share = (ratio / self._base(ev, ratio)).clamp(max=1.0)
        return (share.sqrt() if self.rule == "sqrt" else share).clamp(min=self.floor)

    @property
    def needs(self) -> frozenset[str]:
        """The measured base is state."""
        return frozenset({"state"}) if self.base == "measured" else frozenset()

    def _base(self, ev: EvidenceView, ratio: Tensor) -> Tensor | float:
        if not isinstance(self.base, str):
            return self.base
        rows = ev.rows.nonempty
        fresh = (torch.where(rows, ev.batch.lag(), 0).amax((-2, -1)) == 0) & rows.any(-1).any(-1)
        before = ev.batch.state.get("ess.base")
        known = torch.zeros_like(ratio) if before is None else before.to(ratio.dtype)
        measured = torch.where(fresh, torch.where(known > 0, 0.9 * known + 0.1 * ratio, ratio), known)
        ev.state["ess.base"] = measured
        return torch.where(measured > 0, measured, 1.0)


def _released_ratio(log_weight: Tensor, rows: Tensor) -> Tensor:
    """ESS ratio as the released code computes it; +inf, hence a full step, where that is not a number."""
    weight = torch.where(rows, log_weight.exp(), 0.0)
    total, squares = weight.sum((-2, -1)), (weight * weight).sum((-2, -1))
    ratio = total * total / (squares + 1e-8) / rows.sum((-2, -1)).clamp(min=1)
    return torch.where(torch.isnan(ratio), torch.inf, ratio)
