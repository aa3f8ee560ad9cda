"""Tasks whose items are made up, endlessly, from keyed streams."""

from abc import abstractmethod
from collections.abc import Sequence

from vcpo_bench.bench.tasks.base import HELD_OUT
from vcpo_bench.bench.tasks.text.base import TRAINING, Item, Split, TextTask
from vcpo_bench.bench.tasks.text.items.item_stream import Draws


class GeneratedTask(TextTask):
    """Draws items; the same item may come up in training and among the held-out ones if there are few of them."""

    @abstractmethod
    def draw(self, draws: Draws) -> Item:
        """One item, always solvable."""

    def item(self, seed: int, batch: int, index: int, purpose: str = TRAINING) -> Item:
        """One training item, a pure function of the arguments."""
        return self.draw(Draws(seed, purpose, batch, index))

    def items(self, split: Split) -> Sequence[Item]:
        """A fixed sample of 256 items per split, from streams that training does not read."""
        return [self.draw(Draws(0, f"{split} items", 0, index)) for index in range(HELD_OUT)]
