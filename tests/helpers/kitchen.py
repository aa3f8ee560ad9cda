"""A kind of the tests' own: dishes, with a parameter of every type."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.errors import UsageError
from vcpo_bench.naming.component import Component
from vcpo_bench.naming.parameters import choice, expression, flag, integer, number, text


@dataclass(frozen=True, kw_only=True)
class Dish(Component):
    """The base class of the kind."""


@dataclass(frozen=True, kw_only=True)
class Soup(Dish):
    """One entry with every type of parameter."""

    name: ClassVar[str] = "soup"
    summary: ClassVar[str] = "water with things in it"
    spoons: int = integer(2, minimum=1, maximum=12)
    salt: float | str = number(0.5, minimum=0, words=("taste",))
    heat: float = number(60.0, above=0, below=100)
    kind: str = choice("clear", "thick")
    hot: bool = flag(True)
    garnish: str = text("", legal="what goes on top")
    beside: str = expression("bread", legal="a dish")


@dataclass(frozen=True, kw_only=True)
class Bread(Dish):
    """One entry with a check across parameters, whose values must have keys."""

    name: ClassVar[str] = "bread"
    bare_value: ClassVar[bool] = False
    low: float = number(0.0)
    high: float = number(math.inf)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise UsageError(f"bread: low={self.low:g} is above high={self.high:g}")


@dataclass(frozen=True, kw_only=True)
class Water(Dish):
    """One entry without parameters."""

    name: ClassVar[str] = "tap-water"
