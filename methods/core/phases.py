"""The phases of one update, and the values that become known on the way."""

from __future__ import annotations

from typing import Literal

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.errors import EvidenceOrderError

Phase = Literal["admission", "baseline", "penalty", "step", "weight", "mask", "aggregation", "surrogate"]
"""In the order they come: rows left out, rewards turned into advantages, penalties taken from them, the size of the
step, weights added with `+`, tokens rejected, how much a token counts, and the surrogate with its regularizers."""


class PhasedValues:
    """Values that become known during an update. Reading one earlier raises; it is never silently 0."""

    def __init__(self) -> None:
        self._phase: Phase | None = None
        self._actor = ""
        self._advantage: Tensor | None = None
        self._extra_weight: Tensor | None = None
        self._weighted_advantage: Tensor | None = None

    def enter(self, phase: Phase, actor: str) -> None:
        """Note what acts now, for the error of a value that is read too early.

        Args:
            phase: The phase.
            actor: Name of the part or method that reads next.
        """
        self._phase, self._actor = phase, actor

    @property
    def advantage(self) -> Tensor:
        """`[..., P, G, 1|T]` the advantage; in the penalty phase that of the baseline, then without the penalties.

        Raises:
            EvidenceOrderError: Before the penalty phase.
        """
        if self._advantage is None:
            raise self._too_early("advantage", "penalty")
        return self._advantage

    @advantage.setter
    def advantage(self, value: Tensor) -> None:
        self._advantage = value

    @property
    def extra_weight(self) -> Tensor | None:
        """`[..., P, G, 1|T]` product of the weights added with `+`, or None when there are none.

        Raises:
            EvidenceOrderError: Before the mask phase.
        """
        if self._weighted_advantage is None:
            raise self._too_early("extra_weight", "mask")
        return self._extra_weight

    @property
    def weighted_advantage(self) -> Tensor:
        """`[..., P, G, 1|T]` the advantage times that product: what a surrogate multiplies.

        Raises:
            EvidenceOrderError: Before the mask phase.
        """
        if self._weighted_advantage is None:
            raise self._too_early("weighted_advantage", "mask")
        return self._weighted_advantage

    def apply_weight(self, extra: Tensor | None) -> None:
        """Make the product of the weights added with `+` known; None: there are none."""
        self._extra_weight = extra
        self._weighted_advantage = self.advantage if extra is None else self.advantage * extra

    def _too_early(self, name: str, known_from: Phase) -> EvidenceOrderError:
        return EvidenceOrderError(name, known_from, self._phase, self._actor)
