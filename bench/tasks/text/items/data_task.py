"""Text tasks whose items are rows of a data set: a local file, the hub, or the small sample beside the task's file."""

import hashlib
import inspect
import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple

from vcpo_bench.bench.tasks.text.base import TRAINING, Item, Split, TextTask
from vcpo_bench.bench.tasks.text.items.item_stream import ItemStream
from vcpo_bench.bench.tasks.text.items.rows import HubSet, Row, RowSource, read_hub, read_rows, resolve
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.parameters import text

_HELD_OUT_STEP = 5  # without a file of its own, one row in five is held out, fewer of many: about 256
_HELD_OUT_ROWS = 256


class Splits(NamedTuple):
    """Items of both splits and a hash of all of them."""

    train: Sequence[Item]
    held_out: Sequence[Item]
    sha: str


@dataclass(frozen=True, kw_only=True)
class DataTask(TextTask):
    """Rows become items; training draws them with replacement.

    Attributes:
        data: Where the rows are.
        test: File of held-out rows; default: the folder's test file, or rows spread evenly over `data`.
        sha: Hash the items must have; it is part of the canonical name, so that other data are other cells.

    Class attributes:
        columns: Fields with text that every row has.
        hub: The data set on the Hugging Face hub, by split; empty: `data` must name a file.
    """

    columns: ClassVar[tuple[str, ...]]
    hub: ClassVar[dict[Split, HubSet]] = {}
    data: str = text("hub", legal="hub, sample, a .jsonl or .parquet file, or a folder with train.* and test.* files")
    test: str = text("", legal="a .jsonl or .parquet file with held-out rows")
    sha: str = text("", legal="the hash of the items, from a canonical name")

    def __post_init__(self) -> None:
        """Refuse data that cannot be found, or are not those of the hash.

        Raises:
            UsageError: They are.
        """
        super().__post_init__()
        self._source  # noqa: B018 - finds the files
        if self.sha and self.sha != self.digest:
            problem = f"the data changed, hash {self.digest} instead of {self.sha}"
            raise UsageError(f"{self.name}(data={self.data}): {problem}")

    def settings(self) -> dict[str, str]:
        """The parameters that differ from their defaults, the hash of the items always among them."""
        return super().settings() | ({"sha": self.digest} if self.digest else {})

    @property
    def digest(self) -> str:
        """Twelve hex digits of the hash of all items; empty for the sample, which the package's version fixes."""
        return "" if self.data == "sample" else self._splits.sha

    @staticmethod
    @abstractmethod
    def read(row: Row) -> Item | None:
        """The item of a row; None if the row has no answer that could be scored."""

    def items(self, split: Split) -> Sequence[Item]:
        """All items of a split."""
        return self._splits.train if split == "train" else self._splits.held_out

    def item(self, seed: int, batch: int, index: int, purpose: str = TRAINING) -> Item:
        """One training item, drawn with replacement: a pure function of the arguments and the data."""
        train = self._splits.train
        return train[ItemStream(seed, purpose, batch, index).below(len(train))]

    @cached_property
    def _source(self) -> RowSource:
        sample = Path(inspect.getfile(type(self))).with_name("samples") / f"{self.name}.jsonl"
        return resolve(self.name, self.data, self.test, sample, bool(self.hub))

    @cached_property
    def _splits(self) -> Splits:
        return load_splits(type(self), self._source, self._source.stamps())


@cache
def load_splits(kind: type[DataTask], source: RowSource, stamps: tuple[tuple[int, int], ...]) -> Splits:
    """Items of a source, read once per process as long as its files do not change.

    Args:
        kind: The task.
        source: Where the rows are.
        stamps: Time and size of its files.

    Raises:
        UsageError: The rows cannot be read, or few of them have an answer.
    """
    if source.train is None:
        train, held_out = read_hub(kind.name, kind.hub["train"]), read_hub(kind.name, kind.hub["held_out"])
    else:
        train = read_rows(source.train, kind.columns)
        held_out = read_rows(source.held_out, kind.columns) if source.held_out else []
    if not held_out:
        step = max(_HELD_OUT_STEP, len(train) // _HELD_OUT_ROWS)
        held_out = train[step - 1 :: step]
        train = [row for place, row in enumerate(train, 1) if place % step]
    train_items, held_out_items = _items(kind, train, "training"), _items(kind, held_out, "held-out")
    asked = {item.prompt for item in held_out_items}
    train_items = [item for item in train_items if item.prompt not in asked]
    if not train_items:
        raise UsageError(f"{kind.name}: every training question is held out, too; pass other data to evaluate on")
    digest = hashlib.sha256(json.dumps([train_items, held_out_items], sort_keys=True).encode())
    return Splits(train_items, held_out_items, digest.hexdigest()[:12])


def _items(kind: type[DataTask], rows: Sequence[Row], which: str) -> list[Item]:
    items = [item for row in rows if (item := kind.read(row)) is not None]
    if len(items) < max(1, 0.9 * len(rows)):
        raise UsageError(
            f"{kind.name}: {len(items)} of {len(rows)} {which} rows have an answer that can be scored; "
            f"check the fields {', '.join(kind.columns)}"
        )
    return items
