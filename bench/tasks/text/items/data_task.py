"""Tasks whose items are rows of a data set: a local file, the hub, or the small sample that ships with the package."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import ClassVar, NamedTuple

from vcpo_bench.bench.tasks.text.base import TRAINING, Item, Setting, Split, TextTask
from vcpo_bench.bench.tasks.text.items.item_stream import Draws
from vcpo_bench.bench.tasks.text.items.rows import HubSet, Row, Source, read_hub, read_rows, resolve
from vcpo_bench.errors import UsageError

_LARGEST_SHARE = 5  # without a file of its own, held out is one row in five, and fewer of many: about 256
_ABOUT = 256


class Splits(NamedTuple):
    """Items of both splits and a hash of all of them."""

    train: Sequence[Item]
    held_out: Sequence[Item]
    sha: str


class DataTask(TextTask):
    """Rows become items; training draws them with replacement.

    Args:
        data: `hub`, `sample`, a .jsonl or .parquet file, or a folder with train.* and test.* files.
        test: A file of held-out rows; default: the folder's test file, or rows spread evenly over `data`.
        sha: A hash the items must have; it is part of the canonical expression, so that other data are other cells.

    Raises:
        UsageError: The data cannot be found or read, or are not those of the hash.
    """

    parameters: ClassVar[Mapping[str, Setting]] = {"data": "hub", "test": "", "sha": ""}
    fields: ClassVar[tuple[str, ...]]
    hub: ClassVar[dict[Split, HubSet]]

    def __init__(self, data: str = "hub", test: str = "", sha: str = "") -> None:
        self.data = data
        self.test = test
        self._source: Source = resolve(self.name, data, test)
        if sha and sha != self.sha:
            raise UsageError(f"{self.name}(data={data}): the data changed, hash {self.sha} instead of {sha}")

    @property
    def sha(self) -> str:
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
        return train[Draws(seed, purpose, batch, index).below(len(train))]

    @cached_property
    def _splits(self) -> Splits:
        return load_splits(type(self), self._source, self._source.stamps())


@cache
def load_splits(kind: type[DataTask], source: Source, stamps: tuple[tuple[int, int], ...]) -> Splits:
    """Items of a source, read once per process as long as its files stay what they are.

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
        train = read_rows(source.train, kind.fields)
        held_out = read_rows(source.held_out, kind.fields) if source.held_out else []
    if not held_out:
        step = max(_LARGEST_SHARE, len(train) // _ABOUT)
        held_out = train[step - 1 :: step]
        train = [row for place, row in enumerate(train, 1) if place % step]
    train_items, held_out_items = _items(kind, train, "training"), _items(kind, held_out, "held-out")
    digest = hashlib.sha256(json.dumps([train_items, held_out_items], sort_keys=True).encode())
    return Splits(train_items, held_out_items, digest.hexdigest()[:12])


def _items(kind: type[DataTask], rows: Sequence[Row], which: str) -> list[Item]:
    items = [item for row in rows if (item := kind.read(row)) is not None]
    if len(items) < max(1, 0.9 * len(rows)):
        raise UsageError(
            f"{kind.name}: {len(items)} of {len(rows)} {which} rows have an answer that can be scored; "
            f"check the fields {', '.join(kind.fields)}"
        )
    return items
