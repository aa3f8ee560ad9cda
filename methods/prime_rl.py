"""prime-rl's loss of April to August 2026: DPPO's mask, an uncapped ratio, and a pull on every token."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.assembly.parts import Parts
from vcpo_bench.methods.dppo_tv import Dppo
from vcpo_bench.methods.parts.kl import Kl
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class PrimeRl(Dppo):
    """c = A r keep - 2 tau log r, keep as in DPPO; the pull is on clipped tokens, too (prime-rl)."""

    name: ClassVar[str] = "prime-rl"
    summary: ClassVar[str] = "uncapped token ratio with DPPO's mask, and a k2 pull on every token"
    reference: ClassVar[str] = "prime-rl #2401; DPPO 2602.04879; Kimi K2.5 2602.02276"
    formula: ClassVar[str] = "c = A r keep - 2 tau log r, keep 0 where A>0 and p-q>high or A<=0 and p-q<-low"
    differences: ClassVar[tuple[str, ...]] = (
        "seven defaults in a year: double-sided masks, masked IS with a geometric band, IPO, this one, IPO again",
        "the docs page shows a cap on the ratio that the code does not have",
    )
    paper_parts: ClassVar[str] = "group-mean+token-mean"
    cap: float = number(float("inf"), minimum=0)
    tau: float = number(1e-3, minimum=0)

    @property
    def defaults(self) -> Parts:
        """Tau (log r)^2 in the loss."""
        pull = Kl(kind="k2", beta=2 * self.tau, anchor=self.anchor, clamp=self.clamp)
        return Parts(regularizers=(pull,) if self.tau > 0 else ())
