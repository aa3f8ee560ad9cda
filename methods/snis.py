"""Self-normalized importance sampling."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.tis import Tis
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class Snis(Tis):
    """c = A w / mean(w) over the rows of the batch: lower variance, biased by a data-dependent denominator."""

    name: ClassVar[str] = "snis"
    summary: ClassVar[str] = "sequence weights capped at 8 and divided by their batch mean"
    reference: ClassVar[str] = "self-normalized importance sampling; verl rollout_is_batch_normalize"
    formula: ClassVar[str] = "c = A u / mean(u), u = min(w, cap)"
    differences: ClassVar[tuple[str, ...]] = (
        "token level: mean over all tokens; sequence level: mean over rows",
        "verl clamps log u at -20 first, and leaves weights as they are when their mean is below 1e-8",
    )
    normalize: str = choice("on", "off", "counted")
