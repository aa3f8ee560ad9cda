"""What every kind offers to `ls`, `show` and `new`."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vcpo_bench.errors import UsageError
from vcpo_bench.naming.grammar import unknown_name

WIDTH = 80
"""Columns of a page."""


class Listing(NamedTuple):
    """A table: column names, rows of texts and numbers, and a line that holds for all."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    note: str = ""


class Kind(ABC):
    """One kind: methods, tasks, presets ...

    Attributes:
        singular: The word of `show` and `new`.
        plural: The word of `ls`.
        module: Dotted name of the module whose import makes the catalog of this kind; empty: it has none.
    """

    singular: str
    plural: str
    module: str = ""

    @abstractmethod
    def listing(self) -> Listing:
        """The table of `vcpo-bench ls PLURAL`."""

    @abstractmethod
    def page(self, name: str) -> list[str]:
        """The lines that explain an entry (`vcpo-bench show SINGULAR NAME`).

        Raises:
            UsageError: There is nothing of that name.
        """

    def write_new(self, name: str, folder: Path) -> list[Path]:
        """Write a working file of this kind and its test; returns their paths.

        Raises:
            UsageError: The name cannot be used, a file exists, or there is no template for this kind.
        """
        raise UsageError(f"new {self.singular}: there is no template for it")

    @property
    def has_template(self) -> bool:
        """Whether `new` can write one."""
        return False

    def unknown(self, name: str, known: Iterable[str]) -> UsageError:
        """The error for a name that is not among `known`."""
        return UsageError(unknown_name(self.singular, name, known))


def heading(name: str, summary: str) -> list[str]:
    """First lines of a page: what the entry is."""
    return textwrap.wrap(f"{name}: {summary or '(it has no summary)'}", WIDTH, subsequent_indent="  ")


def facts(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of a page: a label, then what it says, folded to 80 columns; pairs without text are left out."""
    return [
        line
        for label, text in pairs
        for line in textwrap.wrap(
            text, WIDTH, initial_indent=f"  {label:<10} ", subsequent_indent=" " * 13, break_long_words=False
        )
    ]
