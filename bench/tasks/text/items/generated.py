"""Text tasks whose items are generated without end from keyed streams."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice

from vcpo_bench.bench.tasks.base import HELD_OUT
from vcpo_bench.bench.tasks.text.base import TRAINING, Item, Split, TextTask
from vcpo_bench.bench.tasks.text.items.item_stream import ItemStream


@dataclass(frozen=True, kw_only=True)
class GeneratedTask(TextTask):
    """Generates items; no prompt that is held out is ever generated for training."""

    @abstractmethod
    def draw(self, stream: ItemStream) -> Item:
        """One item, always solvable."""

    def item(self, seed: int, batch: int, index: int, purpose: str = TRAINING) -> Item:
        """One training item, a pure function of the arguments: the first of its stream that is not held out."""
        stream = ItemStream(seed, purpose, batch, index)
        while (item := self.draw(stream)).prompt in self._apart:
            pass
        return item

    def items(self, split: Split) -> Sequence[Item]:
        """A fixed sample of 256 items per split; a task with few prompts repeats those it evaluates on."""
        if split == "train":
            return [self.item(0, 0, index, "train items") for index in range(HELD_OUT)]
        fixed = self._held_out or [self.draw(ItemStream(0, "held_out items", 0, 0))]
        return list(islice(cycle(fixed), HELD_OUT))

    @cached_property
    def _held_out(self) -> list[Item]:
        """Items with different prompts; a repeat among the draws means that there are few: then a quarter of them."""
        draws = [self.draw(ItemStream(0, "held_out items", 0, index)) for index in range(HELD_OUT)]
        distinct = list({item.prompt: item for item in draws}.values())
        return distinct if len(distinct) == len(draws) else distinct[: len(distinct) // 4]

    @cached_property
    def _apart(self) -> frozenset[str]:
        return frozenset(item.prompt for item in self._held_out)
