"""Router-shift policy optimization, for mixtures of experts."""

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.methods.gmpo import Gmpo
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Rspo(Gmpo):
    """GMPO whose token ratios are multiplied, before they are clipped, by gamma <= 1 (RSPO 2510.23027).

    gamma falls with the distance that the routers have moved on the experts the behavior policy used, and is not
    differentiated. That distance is between the behavior and the current policy, whatever the anchor of the ratio.
    """

    name: ClassVar[str] = "rspo"
    summary: ClassVar[str] = "GMPO with token ratios scaled by how little the routers of a mixture of experts moved"
    reference: ClassVar[str] = "RSPO 2510.23027"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = (
        "gmpo of r_t gamma_t, gamma_t = max(floor, exp(-d_t)), d_t = mean over layers and over mu's k experts e of "
        "|log p(e) - log p_mu(e)|, p the router's softmax over all experts"
    )
    differences: ClassVar[tuple[str, ...]] = (
        "the second version of the paper scales before clipping; the first, as summaries quote it, after",
        "RSPO is GMPO with router shift in the paper, which also adds it to GRPO and GSPO; MaoLingYi/verl to these two",
        "gamma was read in summaries that quote the paper and in MaoLingYi/verl, the order in its abstract; the "
        "paper's floor and clip bounds could not be read: 0.8 is from MaoLingYi/verl's tests, 0.4 is GMPO's",
        "a fork of verl averages exp(-|d|) over experts, then takes the mean or the product over layers, and marks "
        "tokens below 0.7",
        "in verl the old routers are the trainer's; here they are the sampler's, like the denominator of the ratio",
    )
    floor: float = number(0.8, above=0, maximum=1)

    def own_needs(self) -> frozenset[str]:
        """How far the routers have moved."""
        return super().own_needs() | {"router_shift"}

    def log_ratio(self, ev: EvidenceView) -> Tensor:
        """See `Gmpo.log_ratio`: log r + log gamma."""
        return super().log_ratio(ev) - ev.token_field("router_shift").clamp(max=-math.log(self.floor))
