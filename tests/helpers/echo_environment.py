"""An environment of four tokens, for tests of what an episode counts."""

from collections.abc import Sequence

from vcpo_bench.bench.tasks import Reply, Turn
from vcpo_bench.bench.tasks.environment import Environment

CALL, STOP, BAD, END = 1, 2, 3, 9


class Echo(Environment):
    """A turn ends with 9; the token before says what it was. A call is answered by 7 7.

    Args:
        aside: What it says to a void turn.
    """

    turn_limit = 3

    def __init__(self, aside: tuple[int, ...] = ()) -> None:
        self._aside = aside

    def over(self, said: Sequence[int]) -> bool:
        return said[-1] == END

    def reply(self, prompt: Sequence[int], turns: Sequence[Turn], said: Sequence[int]) -> Reply:
        kinds = {CALL: Reply("call", (7, 7)), STOP: Reply("answer"), BAD: Reply("malformed", (8,))}
        return kinds.get(said[-2] if len(said) > 1 else 0, Reply("void", self._aside))
