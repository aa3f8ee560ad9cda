"""A plug-in task that a random model earns something in: the share of digits in a response."""

from dataclasses import dataclass

from vcpo_bench.bench.tasks.text.base import Item
from vcpo_bench.bench.tasks.text.items.generated import GeneratedTask
from vcpo_bench.bench.tasks.text.items.item_stream import ItemStream


@dataclass(frozen=True, kw_only=True)
class Digits(GeneratedTask):
    """More digits are better."""

    name = "digits"
    summary = "the share of digits in a response"

    @property
    def max_response(self) -> int:
        return 8

    def draw(self, stream: ItemStream) -> Item:
        return Item(f"{stream.below(100)}+{stream.below(100)}=", "7", {})

    def score(self, item: Item, text: str) -> float:
        return sum(one.isdigit() for one in text) / 8

    def demonstration(self, item: Item) -> str:
        return "12345678"
