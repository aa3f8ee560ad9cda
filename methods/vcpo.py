"""Variance-controlled policy optimization."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.assembly.parts import Parts
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.interfaces import Baseline, Step
from vcpo_bench.methods.core.ratios import log_of
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.methods.parts.constant import Constant
from vcpo_bench.methods.parts.ess import EssStep
from vcpo_bench.methods.parts.grpo import Grpo
from vcpo_bench.methods.parts.opob import Opob
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Vcpo(RatioMethod):
    """Sequence TIS, a step scaled by the square root of the ESS, and the off-policy optimal baseline (2602.17616).

    c = A min(w, cap); the step is multiplied by min(1, rho/base)^(1/2) with rho the ESS ratio of the weights before
    truncation; A = (R - b)/std with b of `Opob`. Its halves are `vcpo(baseline=group)` and
    `vcpo(ess=off)`. `variant=released` is the published code: the weight enters the baseline twice, 1e-8 is added
    to the sum of its weights, rows without tokens count in it with a reward of 0, and the ESS is computed from
    unshifted weights, failing open (full step) when they overflow.
    """

    name: ClassVar[str] = "vcpo"
    summary: ClassVar[str] = "sequence TIS 8, step scaled by sqrt of the ESS, off-policy optimal baseline"
    reference: ClassVar[str] = "VCPO 2602.17616"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = (
        "c = (R-b)/std min(w, cap), step x sqrt(min(1, rho/base)), b = sum w^2|s|^2 R / sum w^2|s|^2"
    )
    differences: ClassVar[tuple[str, ...]] = (
        "released code: W = min(w, cap)^2 w^2 |s|^2 instead of w^2 |s|^2",
        "released code: min(1.0, nan) is 1.0, so an overflowing batch steps at the full rate",
    )
    cap: float = number(8.0, minimum=0)
    baseline: str = choice("opob", "group")
    ess: str = choice("sqrt", "linear", "off")
    base: float | str = number(1.0, minimum=1e-8, words=("measured",))
    variant: str = choice("paper", "released")

    @property
    def own_revision(self) -> int:
        """2 for the published code's baseline: it lacked the 1e-8."""
        return 2 if self.variant == "released" and self.baseline == "opob" else 1

    @property
    def defaults(self) -> Parts:
        """Its baseline and its step rule."""
        return Parts(baseline=self._own_baseline(), step=self._own_step())

    def _own_baseline(self) -> Baseline:
        """OPOB, or the group mean over the population standard deviation."""
        if self.baseline == "group":
            return Grpo()
        if self.variant == "released":
            return Opob(weight="released", cap=self.cap, eps=1e-8, empty="zero")
        return Opob()

    def _own_step(self) -> Step:
        """The ESS rule, unless it is off."""
        if self.ess == "off":
            return Constant()
        return EssStep(rule=self.ess, base=self.base, space="raw" if self.variant == "released" else "log")

    def terms(self, ev: EvidenceView) -> Terms:
        """Truncated sequence weights."""
        row = ev.pair("current", self.anchor).row_log.clamp(-self.clamp, self.clamp).unsqueeze(-1)
        top = log_of(self.cap)
        return Terms(weight=row.clamp(max=top).exp(), capped=row > top)
