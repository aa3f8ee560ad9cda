"""walk and walk-eos: walks on a ten-node graph that must end at a goal. Many right answers, high entropy."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks.base import Demonstrations, per_response
from vcpo_bench.bench.tasks.graph import NODES, PROMPT, legal_steps, questions, rare, right_walks, ways
from vcpo_bench.bench.tasks.token_task import TokenTask, integers
from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.naming.parameters import integer

_EOS = 11
_HARD_SHARE = 0.01
"""Share of hard questions among demonstrations; of all others it is about a half."""


@dataclass(frozen=True, kw_only=True)
class _Graph(TokenTask):
    """What the two walks share. The prompt is start, goal, two nodes to avoid and a mark: thousands of questions."""

    @property
    @abstractmethod
    def lengths(self) -> tuple[int, int]:
        """Fewest and most steps of a walk."""

    @property
    def prompt_length(self) -> int:
        """Start, goal, two nodes to avoid, and the mark."""
        return PROMPT

    def prompts(self, draws: NDArray[np.float64]) -> Tensor:
        """Questions that have an answer, uniform (only the first number of each row is used)."""
        known = questions(*self.lengths)
        return known[integers(draws[:, 0], len(known))]

    def hard(self, prompts: Tensor) -> Tensor:
        """The goal or a closed node is 8 or 9, which demonstrations hardly show; about half of the questions."""
        return rare(prompts)

    def shown(self, seed: int, batch: int, count: int) -> Tensor:
        """Prompts of demonstrations, int64 [count, 5]: one in a hundred is hard."""
        return self.apart(lambda k: self._mostly_easy(seed, f"demonstrations {k}", batch, count))

    def _mostly_easy(self, seed: int, purpose: str, batch: int, count: int) -> Tensor:
        draws = uniforms(seed, purpose, batch, count, 2)
        known = questions(*self.lengths)
        easy, hard = known[~rare(known)], known[rare(known)]
        chosen = torch.from_numpy(draws[:, :1] < _HARD_SHARE)
        return torch.where(chosen, hard[integers(draws[:, 1], len(hard))], easy[integers(draws[:, 1], len(easy))])

    def render(self, prompt: Tensor, response: Tensor, mask: Tensor) -> str:
        """`3 to 7 not 0,5: 3>4>7.`, an illegal step written `!` and the end token `.`."""
        start, goal, *avoided = prompt[:4].tolist()
        text = f"{start} to {goal} not {','.join(map(str, sorted(set(avoided))))}: {start}"
        legal = legal_steps(prompt[None], response[None])[0]
        for token, right in zip(response[mask].tolist(), legal[mask].tolist(), strict=True):
            if token == self.eos:
                return text + "."
            text += (">" if right else "!") + self.vocabulary[token]
        return text


@dataclass(frozen=True, kw_only=True)
class Walk(_Graph):
    """Take exactly T legal steps from the start, avoid two nodes, and stand on the goal at the end.

    Attributes:
        T: Number of steps.
    """

    name = "walk"
    summary = "T legal steps on a 10-node graph, two nodes closed, to the goal (many right answers, high entropy)"
    T: int = integer(12, minimum=5, maximum=64)

    @property
    def lengths(self) -> tuple[int, int]:
        """T steps."""
        return self.T, self.T

    @property
    def vocabulary(self) -> list[str]:
        """The nodes and the mark."""
        return [*map(str, range(NODES)), ":"]

    @property
    def max_response(self) -> int:
        """The steps."""
        return self.T

    def reward(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
        """1 if every step is legal and the last node is the goal, else 0."""
        prompts = per_response(prompts, len(responses))
        legal = legal_steps(prompts, responses)
        return ((legal & mask).all(1) & (responses[:, -1] == prompts[:, 1])).double()

    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        """Prompts with a right walk, every one equally likely."""
        prompts = self.shown(seed, batch, count)
        draws = torch.from_numpy(uniforms(seed, "demonstration walks", batch, count, self.T))
        nodes = right_walks(prompts, torch.full((count,), self.T), draws, self.T)
        return Demonstrations(prompts, nodes, torch.ones(count, self.T, dtype=torch.bool))


@dataclass(frozen=True, kw_only=True)
class WalkEos(_Graph):
    """Walk legally from the start, avoid two nodes and stop, with the end token, on the goal: 4 to 24 tokens."""

    name = "walk-eos"
    summary = "a legal walk, two nodes closed, that the policy ends on the goal; 4 to 24 tokens (variable length)"
    shortest: ClassVar[int] = 4
    eos = _EOS

    @property
    def lengths(self) -> tuple[int, int]:
        """One token of each response is the end."""
        return self.shortest - 1, self.max_response - 1

    @property
    def max_response(self) -> int:
        """The longest walk that counts, end token included."""
        return 24

    @property
    def vocabulary(self) -> list[str]:
        """The nodes, the mark and the end token."""
        return [*map(str, range(NODES)), ":", "."]

    def reward(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
        """1 if every step is legal, the end token stands on the goal and the length is within bounds, else 0."""
        prompts = per_response(prompts, len(responses))
        lengths = mask.sum(1)
        ended = (responses == _EOS) & mask
        legal = (legal_steps(prompts, responses) | ended | ~mask).all(1)
        path = torch.cat([prompts[:, :1], responses], dim=1)
        last = path.gather(1, (lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
        return (legal & ended.any(1) & (last == prompts[:, 1]) & (lengths >= self.shortest)).double()

    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        """Prompts with a right walk of a random length, all lengths that have one equally likely."""
        T, longest = self.max_response, self.lengths[1]
        prompts = self.shown(seed, batch, count)
        steps = self._steps(prompts, torch.from_numpy(uniforms(seed, "demonstration lengths", batch, count, 1)))
        draws = torch.from_numpy(uniforms(seed, "demonstration walks", batch, count, longest))
        nodes = right_walks(prompts, steps, draws, longest)
        positions = torch.arange(T)
        responses = torch.cat([nodes, nodes[:, -1:]], dim=1).where(positions < steps[:, None], _EOS)
        return Demonstrations(prompts, responses, positions <= steps[:, None])

    def _steps(self, prompts: Tensor, draws: Tensor) -> Tensor:
        """A length int64 [B] for which each prompt [B, 5] has a right walk, from uniform numbers [B, 1]."""
        shortest, longest = self.lengths
        counts = ways(prompts, longest)[shortest:, torch.arange(len(prompts)), prompts[:, 0]]
        possible = (counts > 0).T.long().cumsum(1)
        return shortest + (possible <= (draws * possible[:, -1:]).long()).sum(1)
