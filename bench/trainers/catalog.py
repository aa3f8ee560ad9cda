"""Trainers as a user names them, and the catalog that finds them: a trainer is one file, or a plug-in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from vcpo_bench.bench.tasks.catalog import NamedTask
from vcpo_bench.bench.trainers.job import TrainerJob
from vcpo_bench.methods import Method
from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.component import Component
from vcpo_bench.records.settings import CellFields


@dataclass(frozen=True, kw_only=True)
class CellTrainer(Component):
    """What trains a cell. A subclass is a frozen dataclass whose fields are its parameters."""

    bare_value: ClassVar[bool] = False

    @property
    def ranks(self) -> int:
        """Processes that train one cell together, each on a GPU of its own where there are GPUs."""
        return 1

    @property
    def elsewhere(self) -> bool:
        """Whether its processes run on a cluster of its own, so that the GPUs of this machine do not count."""
        return False

    def refuse(self, config: CellFields, method: Method, task: NamedTask) -> None:
        """Refuse a cell that it cannot carry out exactly.

        Raises:
            UsageError: With the reason.
        """

    def check_installed(self) -> None:
        """Refuse to run, before the first cell, where a package is missing or of a version that was not tested.

        Raises:
            UsageError: It is.
        """


class OutsideTrainer(CellTrainer, ABC):
    """A trainer that trains in processes of its own, to which `bench.trainers.job` talks."""

    @abstractmethod
    def command(self, job: Path) -> list[str]:
        """What starts a cell.

        Args:
            job: The file that `bench.trainers.job.TrainerJob.write` wrote.
        """

    def configuration(self, job: TrainerJob, folder: Path) -> list[str]:
        """What a cell is to the trainer, in its own words, one setting a line; empty: it has none beside the job."""
        return []


TRAINERS: Catalog[CellTrainer] = Catalog(
    "trainer", CellTrainer, ["vcpo_bench.bench.trainers", "vcpo_bench.adapters.trainers"]
)
"""Every trainer, those of plug-ins included."""
