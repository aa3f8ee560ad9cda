"""Truncated importance sampling with the length-normalized ratio."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.tis import Tis
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class GeoTis(Tis):
    """c = A min(s, cap), s the geometric mean of the row's ratios: biased, but it does not explode with length."""

    name: ClassVar[str] = "geo-tis"
    summary: ClassVar[str] = "detached geometric-mean ratio per row, capped at 2"
    reference: ClassVar[str] = "slime, ROLL, ms-swift"
    formula: ClassVar[str] = "c = A min(s, cap), s = (prod_t r_t)^(1/L)"
    differences: ClassVar[tuple[str, ...]] = ("called 'sequence' in ms-swift and open-instruct",)
    level: str = choice("geometric", "token", "sequence", "segment")
    cap: float = number(2.0, minimum=0)
