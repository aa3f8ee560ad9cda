"""arithmetic: sums and products of two to n numbers, worked out step by step. The policy ends the response."""

from dataclasses import dataclass

from vcpo_bench.bench.tasks.text.base import Item
from vcpo_bench.bench.tasks.text.items.generated import GeneratedTask
from vcpo_bench.bench.tasks.text.items.item_stream import ItemStream
from vcpo_bench.naming.parameters import integer


@dataclass(frozen=True, kw_only=True)
class Arithmetic(GeneratedTask):
    """`3+14*2-7=` must be answered with its value; steps before the last `=` of the response are free.

    Demonstrations reduce one operation at a time, `3+28-7=31-7=24`, so that lengths differ from item to item.

    Attributes:
        terms: Most numbers in an item; each item has 2 to `terms`, uniform.
        largest: Largest number.
    """

    name = "arithmetic"
    summary = "sums and products of 2 to n numbers, with free steps; the policy ends the response (variable length)"
    suits = "LM 1M new"
    terms: int = integer(4, minimum=2, maximum=8)
    largest: int = integer(20, minimum=1, maximum=999)

    @property
    def max_response(self) -> int:
        """The steps of the longest demonstration with as many digits as they can have, and the end token."""
        steps, digits = self.terms - 1, self.terms * len(str(self.largest))  # digits of one step, at most
        return steps * (digits + 2) + steps * (steps - 1) // 2 + 1  # with signs and equals signs

    def draw(self, stream: ItemStream) -> Item:
        """Two to `terms` numbers and the signs between them, all uniform."""
        count = 2 + stream.below(self.terms - 1)
        expression = str(1 + stream.below(self.largest))
        for _ in range(count - 1):
            expression += "+-*"[stream.below(3)] + str(1 + stream.below(self.largest))
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
