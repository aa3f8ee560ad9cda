"""What a tracker must be able to do, and the catalog that finds them: a tracker is one file here, or a plug-in."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from vcpo_bench.errors import how_to_install
from vcpo_bench.files.folders import made, refuse_link
from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.component import Component

Rows = Sequence[tuple[int, Mapping[str, Any]]]
"""Update and its metrics by name (`steps/reward`, `evals/greedy_reward` ...), in order. No NaN, no infinity."""


class TrackedRun(ABC):
    """One run at a tracker: one cell.

    Attributes:
        first: First update that the tracker does not have yet.
    """

    first: int = 0

    @abstractmethod
    def log(self, rows: Rows) -> None:
        """Add rows; what it returns from is written, or on its way."""

    @abstractmethod
    def finish(self, facts: Mapping[str, Any], origin: Mapping[str, Any], failed: bool) -> None:
        """The cell has ended.

        Args:
            facts: How: `status`, `reason`, `steps_done`, `seconds`.
            origin: Versions and provenance, to be added to the configuration.
            failed: Whether it ended in an error.

        Raises:
            OSError: Rows may have been lost.
        """

    @abstractmethod
    def interrupt(self) -> None:
        """The grid's run is over and the cell has not ended: let go of it. A later mirror goes on."""


class Connection(ABC):
    """A tracker whose package is loaded, for one results folder."""

    @abstractmethod
    def start(self, key: str, config: Mapping[str, Any]) -> TrackedRun:
        """Start the run of a cell, or go on with it."""

    def report(self, name: str, page: Path) -> None:  # noqa: B027  # a tracker without pages has nothing to do
        """Take the HTML report of the folder, where the tracker can show one."""


@dataclass(frozen=True, kw_only=True)
class Tracker(Component, ABC):
    """Somewhere that results can be mirrored to.

    Everything it keeps on this machine lies in the results folder, in a folder of the tracker's name.

    Class attributes:
        package: The package that must be installed.
        extra: The optional extra of ours that installs it.
    """

    package: ClassVar[str] = ""
    extra: ClassVar[str] = ""

    @property
    def target(self) -> str:
        """What tells two places that this tracker writes to apart: each gets every cell. It names a folder."""
        return "all"

    def command(self, folder: Path | str) -> str:
        """The command that mirrors a results folder later."""
        return f"vcpo-bench results mirror {shlex.quote(str(folder))} --to {shlex.quote(self.text())}"

    @abstractmethod
    def connect(self, folder: Path) -> Connection:
        """Load the package.

        Raises:
            ImportError: It is not installed.
        """

    def kept(self, folder: Path) -> Path:
        """The folder of this tracker in a results folder, which may be a stranger's; it is made if need be.

        Raises:
            UsageError: It, or a database in it, is a link: the tracker would write to what it leads to.
        """
        kept = made(folder, self.name)
        for database in kept.glob("*.db"):
            refuse_link(database)
        return kept

    def trouble(self, error: Exception) -> str:
        """Describe an error of the tracker in one phrase."""
        if isinstance(error, ImportError):
            return f"it is not installed ({how_to_install(self.extra)})"
        return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no reason given'}"


TRACKERS = Catalog(
    "tracker",
    Tracker,  # type: ignore[type-abstract]  # the catalog makes objects of subclasses only
    ["vcpo_bench.bench.outside.trackers"],
)
"""Every tracker, those of installed packages included."""
