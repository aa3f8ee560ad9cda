"""The interface of a learner: all that a trainer asks of whatever updates a policy."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from torch import Tensor

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.training.learner_step import LearnerStep
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import Method


class CellLearner(Protocol):
    """Applies one method to one policy; see `Learner` for what each member does."""

    @property
    @abstractmethod
    def policy(self) -> Policy:
        """What is trained."""

    @property
    @abstractmethod
    def method(self) -> Method:
        """Maps the evidence of a step to coefficients."""

    @abstractmethod
    def update(self, batch: Trajectories, now: int) -> LearnerStep:
        """One optimizer step on `batch` at update number `now`; none if something was not finite."""

    @abstractmethod
    def rate(self, now: int) -> float:
        """Learning rate of update number `now`, before the step scale."""

    @abstractmethod
    def logp(self, batch: Trajectories) -> Tensor:
        """`[P, G, T]` log-probabilities of a batch under the current policy, without gradient."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """What the rest of the run depends on, for a checkpoint."""

    @abstractmethod
    def load(self, tensors: dict[str, Tensor], same_method: bool) -> None:
        """Restore what `tensors` returned."""

    @abstractmethod
    def close(self) -> None:
        """Release what it holds elsewhere."""
