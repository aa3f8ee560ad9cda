"""What answers a policy between its turns: the interface of an environment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple

Kind = Literal["call", "malformed", "void", "answer"]
"""What a turn was: a call that could be carried out, one that could not, neither call nor answer, or the answer."""


class Turn(NamedTuple):
    """A turn of the policy and what the environment said to it, as tokens."""

    said: tuple[int, ...]
    heard: tuple[int, ...]


class Reply(NamedTuple):
    """What an environment makes of a turn.

    Attributes:
        kind: What the turn was; `answer` ends the episode.
        observed: Tokens that follow in the response. The policy reads them, and they carry no loss.
        ends: Whether the episode is over without an answer.
    """

    kind: Kind
    observed: tuple[int, ...] = ()
    ends: bool = False


class Environment(ABC):
    """What answers a policy between its turns.

    It keeps no state: a reply is a function of the prompt and of the turns so far. So a run that was killed goes on
    with the same bits, and an episode can be replayed from its tokens.
    """

    @property
    @abstractmethod
    def turn_limit(self) -> int:
        """Most turns of an episode; one that has not answered by then ends without an answer."""

    @abstractmethod
    def over(self, said: Sequence[int]) -> bool:
        """Whether the policy's turn is over after these tokens, of which there is at least one."""

    @abstractmethod
    def reply(self, prompt: Sequence[int], turns: Sequence[Turn], said: Sequence[int]) -> Reply:
        """What the environment makes of a turn.

        Args:
            prompt: Tokens of the prompt.
            turns: The turns before.
            said: Tokens of the turn that is just over.
        """
