"""How often sampling looks whether responses have ended."""

import torch

EVERY = 8
"""Tokens between two looks on a device on which each look waits for all work before it."""
CHEAP = frozenset({"cpu"})
"""Types of devices on which nothing waits."""


def looks(step: int, device: torch.device) -> bool:
    """Whether to look before step 0, 1, ... of a loop over tokens: each time where it costs nothing.

    Tokens drawn for responses that have ended in between are not recorded.
    """
    return device.type in CHEAP or step % EVERY == 0
