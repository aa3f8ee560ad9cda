"""How far a component reaches: which rows decide what one row gets, and what it reads."""

from dataclasses import dataclass
from enum import IntEnum


class Scope(IntEnum):
    """How many rows must be seen together; a wider scope includes the narrower ones."""

    ROW = 0
    GROUP = 1
    BATCH = 2

    @property
    def phrase(self) -> str:
        """As in a sentence: "needs ..."."""
        return ("one row at a time", "all rows of a prompt together", "all rows of the optimizer step together")[self]


@dataclass(frozen=True)
class Reach:
    """How far a component reaches, and what it reads beside log-probabilities and advantage.

    Attributes:
        scope: Rows that decide what one row gets.
        reads: Of `reward` and `version`.
    """

    scope: Scope = Scope.ROW
    reads: frozenset[str] = frozenset()
