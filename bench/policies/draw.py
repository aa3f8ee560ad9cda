"""What a policy is asked to draw."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vcpo_bench.bench.policies.truncation import Truncation


@dataclass(frozen=True, slots=True)
class Draw:
    """One response per row of `uniforms`, at temperature 1.

    Attributes:
        prompts: int64 [P, Lp], P dividing B: the responses of one prompt are consecutive.
        uniforms: float64 [B, T] in [0, 1): token t of row i is the inverse of its cumulative distribution at [i, t].
        eos: Token that ends a response, or None if all run to T.
        greedy: bool [B], True for rows that take the most likely token instead.
        truncation: How distributions are cut before drawing; None: as the policy does by itself, usually not.
    """

    prompts: Tensor
    uniforms: Tensor
    eos: int | None = None
    greedy: Tensor | None = None
    truncation: Truncation | None = None

    @property
    def rows(self) -> int:
        """Responses, B."""
        return len(self.uniforms)

    @property
    def length(self) -> int:
        """Most tokens of a response, T."""
        return self.uniforms.shape[1]


EVERY = 8
"""Tokens between two looks on a device on which each look waits for all work before it."""
CHEAP = frozenset({"cpu"})
"""Types of devices on which nothing waits."""


def looks(step: int, device: torch.device) -> bool:
    """Whether to look before step 0, 1, ... of a loop over tokens: each time where it costs nothing.

    Tokens drawn for responses that have ended in between are not recorded.
    """
    return device.type in CHEAP or step % EVERY == 0
