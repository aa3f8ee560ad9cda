"""running-sums: add numbers one after another, every step written out. The policy ends the response."""

import re
from dataclasses import dataclass
from itertools import accumulate, pairwise

from vcpo_bench.bench.tasks.text.base import Item
from vcpo_bench.bench.tasks.text.items.generated import GeneratedTask
from vcpo_bench.bench.tasks.text.items.item_stream import ItemStream
from vcpo_bench.naming.parameters import integer


@dataclass(frozen=True, kw_only=True)
class RunningSums(GeneratedTask):
    r"""`Add 21+28+15` is answered by `21+28=49\n49+15=64\nanswer 64`; only the last number counts.

    The questions are 90^terms. No pretrained model knows the format: start from one that `vcpo-bench lab warmup` has
    taught it.

    Attributes:
        terms: Numbers to add, each of two digits.
    """

    name = "running-sums"
    summary = "add two-digit numbers step by step; start from a model that lab warmup has taught the format"
    suits = "LM 135M"
    terms: int = integer(6, minimum=2, maximum=12)

    @property
    def continues(self) -> bool:
        """Always: the format is taught, not asked for."""
        return True

    @property
    def max_response(self) -> int:
        """One token per character of the longest demonstration, the end token, and one to spare."""
        return len(_written([99] * self.terms)) + 2

    def draw(self, stream: ItemStream) -> Item:
        """Numbers uniform in 10..99."""
        numbers = [10 + stream.below(90) for _ in range(self.terms)]
        return Item(f"Add {'+'.join(map(str, numbers))}\n", str(sum(numbers)), {"steps": _written(numbers)})

    def score(self, item: Item, text: str) -> float:
        """1 if the response ends with `answer N`, N the sum, else 0."""
        found = re.search(r"answer ([0-9]{1,9})$", text)
        return float(found is not None and found[1] == item.answer)

    def demonstration(self, item: Item) -> str:
        """Every step, and the answer."""
        return str(item.meta["steps"])


def _written(numbers: list[int]) -> str:
    sums = pairwise(accumulate(numbers))
    steps = [f"{before}+{number}={after}" for number, (before, after) in zip(numbers[1:], sums, strict=True)]
    return "\n".join([*steps, f"answer {sum(numbers)}"])
