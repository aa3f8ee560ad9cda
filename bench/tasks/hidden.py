"""Numbers that a prompt names and does not show: a policy learns them by asking the environment."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

NAME = 6
"""Digits that name a hidden table or number: a million of them, so that training hardly meets one twice."""


def hidden(bound: int, *of: Sequence[int]) -> int:
    """A whole number below `bound` that depends on some tokens and cannot be computed from them by a small network."""
    text = "/".join(",".join(map(str, tokens)) for tokens in of)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") % bound
