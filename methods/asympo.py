"""ASymPO: each row's loss divided by its own mean negative log-probability."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.assembly.method import Method
from vcpo_bench.methods.core.masking import choose
from vcpo_bench.methods.core.ratios import row_mean
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class AsymPo(Method):
    """c = A / n, n = max(eps, -mean_t log pi) of the row, detached (ASymPO 2606.03070).

    The loss of a row is then its advantage, so that those of a group add up to 0 however stale the rows are. No
    behavior policy is needed. `scale=fixed` is the paper's SPO: c = A for A >= 0, `negatives` A for A < 0.
    """

    name: ClassVar[str] = "asympo"
    summary: ClassVar[str] = "advantage over the row's mean negative log-probability, no ratio"
    reference: ClassVar[str] = "ASymPO 2606.03070"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A / max(eps, -mean_t log pi)"
    differences: ClassVar[tuple[str, ...]] = (
        "written from the abstract: whether the paper bounds the divisor, and SPO's factor, could not be read",
    )
    scale: str = choice("nll", "fixed")
    eps: float = number(1e-3, minimum=1e-8)
    negatives: float = number(0.5, minimum=0)

    def terms(self, ev: EvidenceView) -> Terms:
        """The weight of the row."""
        if self.scale == "fixed":
            weight = choose(ev.advantage < 0, self.negatives, 1.0, ev.batch.logp.dtype)
            return Terms(weight=weight.expand_as(ev.batch.logp))
        surprise = -row_mean(ev, ev.token_field("logp")).clamp(max=0.0)
        return Terms(weight=(1 / surprise.clamp(min=self.eps)).expand_as(ev.batch.logp))
