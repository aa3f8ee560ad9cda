"""What the loss hook of a trainer offers a method, and by what the trainer divides what the hook returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Divisor(Enum):
    """What a trainer divides the sum of all hooks by."""

    TOKENS = "the number of tokens that carry loss"
    ROWS = "the number of rows"
    SETTING = "what its own setting says"

    @property
    def parts(self) -> str:
        """The aggregations that come out of it, to be written behind a method."""
        if self is Divisor.ROWS:
            return "+seq-mean-token-mean(empty=counted) or +seq-mean-token-sum(empty=counted)"
        return "+token-mean" if self is Divisor.TOKENS else "one of " + ", ".join(f"+{name}" for name in AVERAGES)


AVERAGES = ("token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean")
"""The names that verl's setting shares with our aggregations."""


@dataclass(frozen=True, kw_only=True)
class Hook:
    """What one trainer's loss hook offers.

    Attributes:
        trainer: Name of the trainer.
        divisor: What the trainer divides by afterwards.
        proximal: Whether log-probabilities of the policy at the first update on a batch arrive.
        scaled_advantage: The division is made beforehand, on the advantage, by a number that the hook cannot know.
        advice: What to use for methods that the hook is too narrow for.
    """

    trainer: str
    divisor: Divisor
    proximal: bool = False
    scaled_advantage: bool = False
    advice: str = "use the adapter of TRL or verl"
