"""Launchers, and the catalog that finds them: a launcher is one file of this folder, or a plug-in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.component import Component
from vcpo_bench.progress import GridObserver


@dataclass(frozen=True, kw_only=True)
class Launcher(Component):
    """Where the cells of a grid run. A subclass is a frozen dataclass whose fields are its parameters.

    Class attributes:
        here: Whether cells run on this machine, as children of this process.
    """

    here: ClassVar[bool] = False

    @abstractmethod
    def check(self, device: str) -> None:
        """Refuse to run where a package, a program or a service is missing, before anything is written.

        Raises:
            UsageError: It is.
        """

    @abstractmethod
    def run(self, cells: Sequence[PlannedCell], options: RunOptions, observer: GridObserver) -> int:
        """Run cells to their ends; returns how many failed.

        Raises:
            UsageError: The cells cannot be run there.
            DiskFullError: There is no space left.
        """


LAUNCHERS: Catalog[Launcher] = Catalog(
    "launcher",
    Launcher,  # type: ignore[type-abstract]  # the catalog makes objects of subclasses only
    ["vcpo_bench.bench.running.schedulers"],
)
"""Every launcher, those of plug-ins included."""
