"""What all trainers of other frameworks have in common: their refusals, and the release that was tested."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from importlib import metadata
from typing import ClassVar

from vcpo_bench.bench.tasks.catalog import NamedTask
from vcpo_bench.bench.trainers.catalog import OutsideTrainer
from vcpo_bench.errors import UsageError, how_to_install
from vcpo_bench.methods import Method
from vcpo_bench.records.settings import CellFields


class FrameworkTrainer(OutsideTrainer):
    """A trainer of a framework whose package has the trainer's name.

    Class attributes:
        framework: How its people write it.
        tested: The release whose gradients, checkpoints and lags are tested.
    """

    framework: ClassVar[str]
    tested: ClassVar[str]

    @property
    @abstractmethod
    def sharded(self) -> bool:
        """Whether the weights are split among processes."""

    @abstractmethod
    def reasons(self, config: CellFields, method: Method) -> Iterator[str]:
        """Why this framework cannot carry out a cell, beside what holds for all frameworks."""

    def refuse(self, config: CellFields, method: Method, task: NamedTask) -> None:
        """See `CellTrainer.refuse`."""
        for reason in (*self._of_any(config, task), *self._of_method(method), *self.reasons(config, method)):
            raise UsageError(f"--trainer {self.name}: {reason}")

    def _of_method(self, method: Method) -> Iterator[str]:
        from vcpo_bench.adapters.locality import locality_of, without_run

        yield from (f"{method.canonical}: {why}" for why in without_run(locality_of(method), self.sharded))

    def _of_any(self, config: CellFields, task: NamedTask) -> Iterator[str]:
        if not config.model:
            yield "it trains language models; name one with --model"
        if task.in_turns:
            yield f"{config.task} is a conversation, and {self.framework}'s cells have one turn; choose another --task"
        if config.regime not in ("fifo", "fifo(fill=hold)"):
            yield f"it makes the lag by delayed consumption; drop --regime {config.regime}"
        if config.optimizer.partition("(")[0] != "adamw" or "reset" in config.optimizer:
            yield f"it steps with AdamW; drop --optimizer {config.optimizer}"
        if config.sampler != CellFields.sampler:
            yield f"{self.framework} draws the responses; drop --sampler {config.sampler}"

    def check_installed(self) -> None:
        """See `CellTrainer.check_installed`."""
        try:
            version = metadata.version(self.name)
        except metadata.PackageNotFoundError:
            install = how_to_install(self.name)
            raise UsageError(f"--trainer {self.name}: {self.framework} is not installed; {install}") from None
        if not re.match(rf"{re.escape(self.tested)}(\.|$)", version):
            tried = f"install {self.name}=={self.tested}.*"
            raise UsageError(f"--trainer {self.name}: {self.framework} {version} was not tested; {tried}")
