"""Text tasks whose items are generated without end from keyed streams."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from vcpo_bench.bench.tasks.base import HELD_OUT
from vcpo_bench.bench.tasks.text.base import TRAINING, Item, Split, TextTask
from vcpo_bench.bench.tasks.text.items.item_stream import ItemStream


@dataclass(frozen=True, kw_only=True)
class GeneratedTask(TextTask):
    """Generates items; where there are few, one may appear in training and among the held-out items."""

    @abstractmethod
    def draw(self, stream: ItemStream) -> Item:
        """One item, always solvable."""

    def item(self, seed: int, batch: int, index: int, purpose: str = TRAINING) -> Item:
        """One training item, a pure function of the arguments."""
        return self.draw(ItemStream(seed, purpose, batch, index))

    def items(self, split: Split) -> Sequence[Item]:
        """A fixed sample of 256 items per split, from streams that training does not read."""
        return [self.draw(ItemStream(0, f"{split} items", 0, index)) for index in range(HELD_OUT)]
