"""Optimizers as a user names them, and the catalog that finds them: an optimizer is one file here, or a plug-in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcpo_bench.lazy_torch import torch
from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.component import Component

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.base import Policy


@dataclass(frozen=True, kw_only=True)
class Optimizer(Component, ABC):
    """What turns the clipped gradient of an update into a step of the weights.

    A subclass is a frozen dataclass whose fields are its parameters. Learning rate, warmup, step scale and weight decay
    are settings of the cell and mean the same with every optimizer.
    """

    @abstractmethod
    def build(self, policy: Policy, lr: float, weight_decay: float) -> torch.optim.Optimizer:
        """The optimizer of a policy's trained parameters.

        All it knows between two steps must be tensors in `state`, so that a checkpoint holds it.

        Args:
            policy: The policy, before its first update.
            lr: Learning rate; the learner sets `lr` of every group before each step.
            weight_decay: Decoupled weight decay: a step shrinks every parameter that has a gradient by
                lr x weight_decay.
        """

    @property
    @abstractmethod
    def moments(self) -> int:
        """Most tensors that it keeps per trained parameter, each of its size, for estimates of memory."""


OPTIMIZERS = Catalog(
    "optimizer",
    Optimizer,  # type: ignore[type-abstract]  # the catalog makes objects of subclasses only
    ["vcpo_bench.bench.optimizers"],
)
"""Every optimizer, those of plug-ins included."""
