"""Decoupled PPO: trust region around a proximal policy, correction for the behavior policy."""

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.clip import Clip
from vcpo_bench.methods.core.proximal import approximate_proximal
from vcpo_bench.methods.core.ratios import log_of
from vcpo_bench.methods.core.reach import Reach
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Decoupled(Clip):
    """c = min(rho, cap) PPO(current/proximal), rho = proximal/behavior detached (2110.00641; AReaL 2505.24298).

    `proximal=given` takes the proximal policy from the batch; `loglinear` interpolates it in log space by
    version, log prox = log mu + a (log theta - log mu), a = (v_prox - v_mu)/(v_theta - v_mu), v_prox = now - 1
    (A-3PO 2512.06547), `linear` the probabilities, and `behavior` sets it equal to the behavior policy.
    """

    name: ClassVar[str] = "decoupled"
    summary: ClassVar[str] = "clip around the proximal policy times the ratio proximal/behavior"
    reference: ClassVar[str] = "Hilton et al. 2110.00641; AReaL 2505.24298"
    year: ClassVar[int] = 2021
    formula: ClassVar[str] = "c = A min(rho, cap) r, 0 where clipped; r = theta/prox, rho = prox/mu"
    differences: ClassVar[tuple[str, ...]] = (
        "AReaL applies no behavior weight unless rejection sampling is configured",
        "RLinf averages over the kept tokens only when a threshold is set, AReaL over all",
    )
    anchor: str = choice("proximal")
    cap: float = number(math.inf, minimum=0)
    proximal: str = choice("given", "loglinear", "linear", "behavior")

    def own_needs(self) -> frozenset[str]:
        """The proximal policy, unless it is approximated."""
        return frozenset({"proximal_logp"}) if self.proximal == "given" else frozenset()

    def own_anchors(self) -> dict[str, str]:
        """Two ratios."""
        return {"ratio": "proximal", "decoupled weight": "proximal/behavior"}

    @property
    def reach(self) -> Reach:
        """The versions, which say how far an approximated proximal policy is behind."""
        reads = {"version"} if self.proximal in ("loglinear", "linear") else set()
        return Reach(self.sees, frozenset(reads))

    def terms(self, ev: EvidenceView) -> Terms:
        """The clipped ratio times the behavior weight."""
        if self.proximal != "given":
            ev.set_proximal(approximate_proximal(ev, self.proximal))
        terms = super().terms(ev)
        assert terms.weight is not None
        terms.weight = terms.weight * ev.ratio("proximal", "behavior", self.clamp).clamp(max=self.cap)
        terms.capped = ev.pair("proximal", "behavior").outside(-math.inf, log_of(self.cap))
        return terms
