"""Tasks whose items are rows of a data set: a local file, the hub, or the small sample that ships with the package."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar, NamedTuple

from vcpo_bench.bench.tasks.text.base import TRAINING, Item, Setting, Split, TextTask
from vcpo_bench.bench.tasks.text.draws import Draws
from vcpo_bench.bench.tasks.text.rows import HubSet, Row, Source, read_hub, read_rows, resolve
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
        data: ``hub``, ``sample``, a .jsonl or .parquet file, or a folder with train.* and test.* files.
        test: a file of held-out rows; default: the folder's test file, or rows spread evenly over `data`.
        sha: a hash the items must have; it is part of the canonical expression, so that other data are other cells.

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

    @abstractmethod
    def read(self, row: Row) -> Item | None:
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
        train, held_out = self._rows()
        if not held_out:
            step = max(_LARGEST_SHARE, len(train) // _ABOUT)
            held_out = train[step - 1 :: step]
            train = [row for place, row in enumerate(train, 1) if place % step]
        train_items, held_out_items = self._items(train, "training"), self._items(held_out, "held-out")
        digest = hashlib.sha256(json.dumps([train_items, held_out_items], sort_keys=True).encode())
        return Splits(train_items, held_out_items, digest.hexdigest()[:12])

    def _rows(self) -> tuple[list[Row], list[Row]]:
        if self._source.train is None:
            return read_hub(self.name, self.hub["train"]), read_hub(self.name, self.hub["held_out"])
        held_out = read_rows(self._source.held_out, self.fields) if self._source.held_out else []
        return read_rows(self._source.train, self.fields), held_out

    def _items(self, rows: Sequence[Row], which: str) -> list[Item]:
        items = [item for row in rows if (item := self.read(row)) is not None]
        if len(items) < max(1, 0.9 * len(rows)):
            raise UsageError(
                f"{self.name}(data={self.data}): {len(items)} of {len(rows)} {which} rows have an answer that can be "
                f"scored; check the fields {', '.join(self.fields)}"
            )
        return items
