"""Trains runs from their start and measures at every update how its step lies to the way the weights have come."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import torch
from torch import Tensor

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.stack.stack import Stack
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.records import STEPS_FILE


class Way:
    """The last weights of one run, and how each of its steps lies to the way they have come.

    Args:
        trainer: The run, before its first update.

    Attributes:
        cosines: cos(theta_{t+1} - theta_t, theta_t - theta_mu) of each update t so far; NaN where one of them is zero.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.cosines: list[float] = []
        self._versions = {0: self._weights()}

    def measure(self) -> None:
        """Measure the update just made.

        Raises:
            ValueError: The tokens of its batch are not all of one version.
        """
        now, steps = self.trainer.step, self.trainer.recorder.tables[STEPS_FILE].columns
        oldest, newest = steps["version_oldest"][-1], steps["version_newest"][-1]
        if oldest != newest:
            raise ValueError("the batch has tokens of several versions: there is no one way since it was drawn")
        self._versions[now] = self._weights()
        new, old = self._versions[now], self._versions[now - 1]
        self.cosines.append(cosine(new - old, old - self._versions[oldest]))
        self._versions = {version: kept for version, kept in self._versions.items() if version >= oldest}

    def _weights(self) -> Tensor:
        return torch.cat([weights.detach().flatten().double() for weights in self.trainer.policy.trainable()])


def cosine(one: Tensor, other: Tensor) -> float:
    """Of two vectors; NaN where one is zero."""
    length = float(one.norm() * other.norm())
    return float(one @ other) / length if length > 0 else float("nan")


def retraced(cells: Sequence[PlannedCell]) -> list[Way]:
    """Train cells of one shape, on a queue that is first in, first out, to their ends as a stack.

    Raises:
        Exception: What ended one of them with an error.
    """
    with ExitStack() as opened:
        ways: dict[Trainer, Way] = {}
        for cell in cells:
            trainer = build_trainer(cell.config, start=cell.start)
            opened.callback(trainer.close)
            ways[trainer] = Way(trainer)
        while going := [trainer for trainer in ways if not trainer.status]:
            _train(Stack(going), ways)
        return list(ways.values())


def _train(stack: Stack, ways: dict[Trainer, Way]) -> None:
    """Advance a stack until one of its cells ends."""
    while not any(trainer.status for trainer in stack.trainers):
        for trainer, made in zip(stack.trainers, stack.advance(), strict=True):
            if made.problem is not None:
                raise made.problem
            ways[trainer].measure()
