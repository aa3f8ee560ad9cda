"""Delay compensation: a first-order correction of the gradient for the drift of the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.interfaces import Step
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class DcAsgd(Step):
    """g <- g + strength g*g*(theta_now - theta_sampled), element by element (DC-ASGD 1609.08326).

    g*g stands for the diagonal of the Hessian. In the paper g is taken at theta_sampled and applied at theta_now. Here
    g is taken at theta_now and only the data are old, for which the rule has no derivation: it is a rival to test. The
    learner keeps the weights of every version in play; a batch of several versions is compensated for the mean of
    their weights over its rows. `rule=adaptive` divides the strength by |g|, their adaptive variant without memory.
    """

    name: ClassVar[str] = "dc-asgd"
    summary: ClassVar[str] = "gradient corrected by its own square times the drift of the weights"
    reference: ClassVar[str] = "DC-ASGD 1609.08326"
    year: ClassVar[int] = 2016
    formula: ClassVar[str] = "g <- g + lambda g*g*(theta_now - theta_sampled)"
    differences: ClassVar[tuple[str, ...]] = (
        "strength: 0.04 is the paper's for the constant rule, on gradients far larger: with a gradient of norm 1 over "
        "1e5 weights the correction is below 1e-5 of g until the strength is in the thousands, or the rule adaptive",
        "the paper's adaptive rule divides by the root of a running mean square of g",
    )
    host: ClassVar[str] = "reinforce"
    strength: float = number(0.04, minimum=0)
    rule: str = choice("constant", "adaptive")

    def scale(self, ev: EvidenceView) -> Tensor:
        """Leading shape: 1, since it acts on the gradient instead."""
        return torch.ones(ev.batch.leading, dtype=ev.batch.logp.dtype, device=ev.batch.logp.device)

    def compensate(self, gradient: Tensor, drift: Tensor) -> Tensor:
        """`[D]`."""
        size = gradient * gradient if self.rule == "constant" else gradient.abs()
        return gradient + self.strength * size * drift
