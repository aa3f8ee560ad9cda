"""One episode in progress: whose turn it is, what the environment still has to say, and what happened so far."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from vcpo_bench.bench.tasks.environment import Environment, Turn
from vcpo_bench.records.step_facts import EPISODE_FACTS


class Episode:
    """One response that a policy and an environment write together, token after token.

    Args:
        environment: What answers the policy.
        prompt: Tokens of the prompt.
        length: Most tokens of the response, observed ones included.

    Attributes:
        ended: Whether no token follows.
        counts: What happened so far, by the names of `EPISODE_FACTS`.
    """

    def __init__(self, environment: Environment, prompt: Sequence[int], length: int) -> None:
        self.environment, self.prompt, self.length = environment, tuple(prompt), length
        self.ended, self.counts = False, Counter[str]()
        self._turns: list[Turn] = []
        self._said: list[int] = []
        self._pending: deque[int] = deque()
        self._place = 0

    @property
    def observes(self) -> bool:
        """Whether the next token is the environment's."""
        return bool(self._pending)

    @property
    def speaks(self) -> bool:
        """Whether the policy has begun a turn and not ended it."""
        return bool(self._said) and not self.ended

    def observe(self) -> int:
        """The next token, where it is the environment's."""
        self._place += 1
        return self._pending.popleft()

    def say(self, token: int) -> None:
        """Take the policy's next token; after the last one of a turn the environment answers."""
        self._place += 1
        self._said.append(token)
        if self.environment.over(self._said):
            self._answer()
        elif self._place == self.length:
            self._end("truncated")

    def _answer(self) -> None:
        said, self._said = tuple(self._said), []
        kind, observed, ends = self.environment.reply(self.prompt, self._turns, said)
        self._turns.append(Turn(said, observed))
        self.counts.update(("turns",) if kind == "answer" else ("turns", _COUNTED[kind]))
        if kind == "answer" or ends:
            self.ended = True
        elif len(self._turns) == self.environment.turn_limit:
            self._end("turn_limited")
        elif self._place + len(observed) >= self.length:
            self._end("truncated")
        else:
            self._pending.extend(observed)
            self.counts["observed"] += len(observed)

    def _end(self, why: str) -> None:
        self.ended = True
        self.counts[why] += 1

    def facts(self) -> list[int]:
        """The counts in the order of `EPISODE_FACTS`."""
        return [self.counts[name] for name in EPISODE_FACTS]


_COUNTED = {"call": "calls", "malformed": "malformed_calls", "void": "void_turns"}
