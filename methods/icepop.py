"""IcePop: token ratios outside a band are zeroed."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.mis import Mis
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class IcePop(Mis):
    """c = A r where low <= r <= cap, else 0, token by token (IcePop, Ring-1T 2510.18855)."""

    name: ClassVar[str] = "icepop"
    summary: ClassVar[str] = "detached token ratio, tokens outside 0.5..5 zeroed"
    reference: ClassVar[str] = "Ring-1T 2510.18855"
    known_as: ClassVar[tuple[str, ...]] = ("token-mask",)
    formula: ClassVar[str] = "c = A r 1[low <= r <= cap]"
    differences: ClassVar[tuple[str, ...]] = (
        "anchor: prox/mu officially, theta/mu in prime-rl; band 0.2..5 in prime-rl",
        "verl's version crashes in its ESS metric when every weight is zeroed (verl#7559)",
    )
    level: str = choice("token", "sequence", "geometric", "segment")
    low: float = number(0.5, minimum=0)
    cap: float = number(5.0, minimum=0)
