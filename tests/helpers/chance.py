"""A plug-in: a task that rewards answers by chance. Random models are never right, and so would never move."""

from dataclasses import dataclass

from vcpo_bench.bench.tasks.text.arithmetic import Arithmetic
from vcpo_bench.bench.tasks.text.base import Item


@dataclass(frozen=True, kw_only=True)
class Chance(Arithmetic):
    """Arithmetic, whose response is worth the mean of its characters: each 0 to 1, a digit of its code."""

    name = "chance"
    summary = "arithmetic, rewarded by chance"

    def score(self, item: Item, text: str) -> float:
        """0 to 1; any policy gets some of it, and can learn to get more."""
        return sum(ord(character) % 5 for character in text) / (4 * max(len(text), 1))
