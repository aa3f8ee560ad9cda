"""AIPO: one-sided clipping of the current ratio."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.tis import Tis
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Aipo(Tis):
    """c = A min(r, cap) with the ratio to the behavior policy recomputed at every minibatch (LlamaRL 2505.24034)."""

    name: ClassVar[str] = "aipo"
    summary: ClassVar[str] = "detached token ratio, recomputed at every minibatch, capped at 10"
    reference: ClassVar[str] = "LlamaRL 2505.24034"
    formula: ClassVar[str] = "c = A min(r, cap), r = theta/mu"
    differences: ClassVar[tuple[str, ...]] = (
        "the paper names 2 to 10 for the cap (10 here); torchforge clips to 0.1..10 (low=0.1)",
    )
    level: str = choice("token", "sequence", "geometric", "segment")
    cap: float = number(10.0, minimum=0)
