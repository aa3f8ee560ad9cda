"""Several optimizers that step, are saved and are loaded as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class SideBySide(torch.optim.Optimizer):
    """Optimizers of different parameters as one optimizer, whose state and groups they share.

    Args:
        parts: The optimizers, before their first step; no parameter is in two of them.
    """

    def __init__(self, parts: Sequence[torch.optim.Optimizer]) -> None:
        self.parts = list(parts)
        super().__init__([group for part in parts for group in part.param_groups], {})
        self._share()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a state, as `load_state_dict` asks, and hand it to the parts."""
        super().__setstate__(state)
        self._share()

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step of each; a closure is not supported."""
        assert closure is None
        for part in self.parts:
            part.step()

    def _share(self) -> None:
        groups = iter(self.param_groups)
        for part in self.parts:
            part.state, part.param_groups = self.state, [next(groups) for _ in part.param_groups]
