"""A warm-up in progress on disk, so that one that is stopped goes on instead of starting again."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import torch
from torch import nn

from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import replacing

SAVE_SECONDS = 30.0
"""Shortest time between two saves; one of 100 million parameters writes 1.2 GB."""


@dataclass(slots=True)
class WarmupState:
    """The file that a warm-up leaves behind while it is not done.

    Every update is a function of weights, optimizer and number of updates, so what resumes ends as if it had not been
    stopped.

    Attributes:
        path: The file.
        purpose: What is warmed up, by which seed; a file of another purpose is not continued.
    """

    path: Path
    purpose: dict[str, str | int | float]
    _saved: float = field(default_factory=monotonic)

    def load(self, policy: nn.Module, optimizer: torch.optim.Optimizer) -> int:
        """Put back weights and optimizer; returns the number of updates done, 0 where nothing is saved.

        Raises:
            UsageError: The file is of another warm-up, or cannot be read.
        """
        if not self.path.exists():
            return 0
        try:
            kept = torch.load(self.path, map_location="cpu", weights_only=True)
            purpose, step = kept["purpose"], int(kept["step"])
        except Exception as error:  # torch, pickle and zipfile raise errors of many kinds
            raise UsageError(
                f"{self.path}: cannot be read ({type(error).__name__}); delete it to begin anew"
            ) from error
        if purpose != self.purpose:
            raise UsageError(f"{self.path}: is of another warm-up; delete it, or choose another --out")
        policy.load_state_dict(kept["policy"])
        optimizer.load_state_dict(kept["optimizer"])
        return step

    def save(self, policy: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        """Save after an update, unless the last save is recent."""
        if monotonic() - self._saved < SAVE_SECONDS:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept = {"policy": policy.state_dict(), "optimizer": optimizer.state_dict()}
        with replacing(self.path) as file:
            torch.save(kept | {"purpose": self.purpose, "step": step}, file)
        self._saved = monotonic()
