"""arithmetic: sums and products of two to n numbers, worked out step by step. The policy ends the response itself."""

from collections.abc import Mapping
from typing import ClassVar

from vcpo_bench.bench.tasks.text.base import Item, Setting
from vcpo_bench.bench.tasks.text.items.generated import GeneratedTask
from vcpo_bench.bench.tasks.text.items.item_stream import Draws
from vcpo_bench.errors import UsageError


class Arithmetic(GeneratedTask):
    """`3+14*2-7=` must be answered with its value; steps before the last `=` of the response are free.

    Demonstrations reduce one operation at a time, `3+28-7=31-7=24`, so that lengths differ from item to item.

    Args:
        terms: Most numbers in an item, 2 to 8; each item has 2 to `terms`, uniform.
        largest: Largest number, 1 to 999.

    Raises:
        UsageError: A parameter is out of range.
    """

    name = "arithmetic"
    summary = "sums and products of 2 to n numbers, with free steps and an end of the policy's own (variable length)"
    parameters: ClassVar[Mapping[str, Setting]] = {"terms": 4, "largest": 20}

    def __init__(self, terms: int = 4, largest: int = 20) -> None:
        if not 2 <= terms <= 8:
            raise UsageError(f"arithmetic(terms={terms}): terms must be 2 to 8")
        if not 1 <= largest <= 999:
            raise UsageError(f"arithmetic(largest={largest}): largest must be 1 to 999")
        self.terms = terms
        self.largest = largest
        steps, digits = terms - 1, terms * len(str(largest))  # digits of a step: those of the numbers left, at most
        self.max_response = steps * (digits + 2) + steps * (steps - 1) // 2 + 1  # signs and `=`; the end token

    def draw(self, draws: Draws) -> Item:
        """Two to `terms` numbers and the signs between them, all uniform."""
        count = 2 + draws.below(self.terms - 1)
        expression = str(1 + draws.below(self.largest))
        for _ in range(count - 1):
            expression += "+-*"[draws.below(3)] + str(1 + draws.below(self.largest))
        steps = _reductions(expression)
        return Item(f"{expression}=", steps[-1], {"steps": "=".join(steps)})

    def score(self, item: Item, text: str) -> float:
        """1 if what follows the last `=` (or the whole response) is the value, else 0."""
        return float(text.rpartition("=")[2].strip() == item.answer)

    def demonstration(self, item: Item) -> str:
        """The reductions, ending in the value."""
        return str(item.meta["steps"])


def _reductions(expression: str) -> list[str]:
    """`3+14*2-7` as `3+28-7`, `31-7`, `24`: products first, then from the left."""
    numbers, signs = _split(expression)
    steps = []
    while signs:
        place = signs.index("*") if "*" in signs else 0
        left, right = numbers[place : place + 2]
        sign = signs.pop(place)
        numbers[place : place + 2] = [left * right if sign == "*" else left + right if sign == "+" else left - right]
        steps.append(str(numbers[0]) + "".join(f"{s}{n}" for s, n in zip(signs, numbers[1:], strict=True)))
    return steps


def _split(expression: str) -> tuple[list[int], list[str]]:
    signs = [character for character in expression if character in "+-*"]
    for sign in "+-*":
        expression = expression.replace(sign, " ")
    return [int(number) for number in expression.split()], signs
