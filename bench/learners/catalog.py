"""Learners as a user names them, and the catalog that finds them: a learner is one file here, or a plug-in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from vcpo_bench.bench.optimizers.catalog import Optimizer
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.regimes import Regime
from vcpo_bench.bench.samplers.catalog import Sampler
from vcpo_bench.bench.tasks import Task
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Method
from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.component import Component


@dataclass(frozen=True, slots=True)
class LearnerJob:
    """What a cell asks of its learner.

    Attributes:
        method: The method.
        regime: The regime.
        optimizer: The optimizer.
        changed: Settings of the cell that differ from their defaults, by name.
    """

    method: Method
    regime: Regime
    optimizer: Optimizer
    changed: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class LearnerKind(Component):
    """Who holds the weights of a cell, and updates them. By default the process that runs the cell.

    A subclass is a frozen dataclass whose fields are its parameters.

    Class attributes:
        url_variable: Environment variable with the address of its server (`--url`); empty: it has none.
        served: Whether the weights are elsewhere: the policy is then a `bench.training.served_learner.ServedPolicy`.
    """

    url_variable: ClassVar[str] = ""
    served: ClassVar[bool] = False

    def check_installed(self) -> None:
        """Refuse to run, before the first cell, where a package or a setting is missing.

        Raises:
            UsageError: It is.
        """

    def check(self, job: LearnerJob) -> None:
        """Refuse a cell that cannot be trained this way.

        Raises:
            UsageError: It cannot; the text names what can.
        """

    def sampler_for(self, sampler: Sampler) -> Sampler:
        """What samples for it, where a user asked for `sampler`.

        Raises:
            UsageError: It cannot work with that sampler.
        """
        if sampler.comes_with not in ("", self.name):
            raise UsageError(
                f"--sampler {sampler.name}: comes with --learner {sampler.comes_with}; give that, or another sampler"
            )
        return sampler

    def open_policy(self, job: LearnerJob, task: Task, folder: Path) -> Policy | None:
        """The policy of a cell whose weights are elsewhere; None: it is loaded in this process.

        Args:
            job: What the cell asks for; it passed `check`.
            task: The task of the cell.
            folder: Folder with the tokenizer and the configuration of the language model.

        Raises:
            UsageError: There is no server, or it cannot train that model.
        """
        return None


LEARNERS: Catalog[LearnerKind] = Catalog("learner", LearnerKind, ["vcpo_bench.bench.learners"])
"""Every learner, those of plug-ins included."""
