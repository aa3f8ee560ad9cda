"""Tasks with an environment: the policy's turns and what the environment answers interleave in one response."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks.base import Demonstrations, per_response
from vcpo_bench.bench.tasks.environment import Environment, Turn
from vcpo_bench.bench.tasks.token_task import TokenTask
from vcpo_bench.lazy_torch import Tensor, torch

_DRAWS = 16  # random numbers per demonstration


@dataclass(frozen=True, kw_only=True)
class EnvironmentTask(TokenTask, Environment):
    """A task in tokens whose policy talks to an environment. A subclass is a frozen dataclass.

    The environment ends an episode, so there is no end token. Tokens it inserts are False in the mask.
    """

    in_turns = True

    @property
    def environment(self) -> Environment:
        """The task itself."""
        return self

    @abstractmethod
    def right(self, prompt: Sequence[int], turns: Sequence[Turn]) -> bool:
        """Whether the finished turns of an episode, of which there is at least one, end with the right answer."""

    @abstractmethod
    def script(self, prompt: Sequence[int], draws: Sequence[float]) -> list[Turn]:
        """A correct episode, with what the environment answers to each turn but the last.

        Args:
            prompt: Tokens of the prompt.
            draws: 16 uniform numbers in [0, 1).
        """

    def shown(self, seed: int, batch: int, count: int) -> Tensor:
        """Prompts int64 [count, Lp] of demonstrations; like those of training, unless a task says otherwise."""
        return self.stream(seed, "demonstrations", batch, count)

    def reward(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
        """1 if the last turn is the right answer, within the limit of turns; else 0."""
        rows = zip(per_response(prompts, len(responses)).tolist(), responses.tolist(), mask.tolist(), strict=True)
        return torch.tensor([self._earns(*row) for row in rows], dtype=torch.float64)

    def _earns(self, prompt: list[int], response: list[int], mask: list[bool]) -> float:
        turns = self.turns_of(response, mask)
        return float(0 < len(turns) <= self.turn_limit and self.right(prompt, turns))

    def turns_of(self, response: Sequence[int], mask: Sequence[bool]) -> list[Turn]:
        """The finished turns of an episode [T], read from its tokens and from which of them the policy said."""
        turns: list[Turn] = []
        said, heard = list[int](), list[int]()
        for token, own in zip(response, mask, strict=True):
            if not own:
                heard.append(token)
                continue
            if heard or (said and self.over(said)):
                turns.append(Turn(tuple(said), tuple(heard)))
                said, heard = [], []
            said.append(token)
        if said and self.over(said):
            turns.append(Turn(tuple(said), ()))  # what follows the last turn is padding
        return turns

    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        """Prompts with correct episodes; the mask is True at what the policy says."""
        prompts = self.shown(seed, batch, count)
        draws = uniforms(seed, "demonstrated turns", batch, count, _DRAWS).tolist()
        responses = torch.zeros(count, self.max_response, dtype=torch.int64)
        mask = torch.zeros(count, self.max_response, dtype=torch.bool)
        for row, (prompt, numbers) in enumerate(zip(prompts.tolist(), draws, strict=True)):
            place = 0
            for said, heard in self.script(prompt, numbers):
                until = place + len(said)
                responses[row, place : until + len(heard)] = torch.tensor(said + heard)
                mask[row, place:until] = True
                place = until + len(heard)
        return Demonstrations(prompts, responses, mask)

    def render(self, prompt: Tensor, response: Tensor, mask: Tensor) -> str:
        """`PROMPT said[heard]said`: what the environment inserted stands in brackets."""
        length = int(mask.nonzero().max()) + 1 if bool(mask.any()) else 0
        text, before = "", True
        for token, own in zip(response[:length].tolist(), mask[:length].tolist(), strict=True):
            text += ("]" if own else "[") * (own != before) + self.vocabulary[token]
            before = own
        return f"{''.join(self.vocabulary[token] for token in prompt.tolist())} {text}"


NAME = 6
"""Digits that name a hidden table or number: a million of them, so that training hardly meets one twice."""


def hidden(bound: int, *of: Sequence[int]) -> int:
    """A whole number below `bound` that depends on some tokens and cannot be computed from them by a small network."""
    text = "/".join(",".join(map(str, tokens)) for tokens in of)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") % bound
