"""walk and walk-eos: walks on a ten-node graph that must end at a goal. Many right answers, high entropy."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks.base import Demonstrations, per_response
from vcpo_bench.bench.tasks.token_task import TokenTask, integers
from vcpo_bench.naming.parameters import integer

NODES = 10
STEPS = (1, 3, 6)  # node n leads to n + 1, n + 3 and n + 6, modulo 10
_PROMPT_END = 10
_EOS = 11
_PREFIX = 3


@dataclass(frozen=True, kw_only=True)
class _Graph(TokenTask):
    """What the two walks share. The prompt is start, goal and a mark."""

    @property
    def prompt_length(self) -> int:
        """Start, goal and mark."""
        return _PREFIX

    def prompts(self, draws: NDArray[np.float64]) -> Tensor:
        """Start and goal, uniform and independent, then the mark (the third number of each row is unused)."""
        ends = integers(draws[:, :2], NODES)
        return torch.cat([ends, torch.full((len(ends), 1), _PROMPT_END)], dim=1)

    def render(self, prompt: Tensor, response: Tensor, mask: Tensor) -> str:
        """`3 to 7: 3>4>7.`, an illegal step written `!` and the end token `.`."""
        text, node = f"{int(prompt[0])} to {int(prompt[1])}: {int(prompt[0])}", int(prompt[0])
        for token in response[mask].tolist():
            if token == self.eos:
                return text + "."
            legal = token < NODES and (token - node) % NODES in STEPS
            text += (">" if legal else "!") + self.vocabulary[token]
            node = token
        return text


@dataclass(frozen=True, kw_only=True)
class Walk(_Graph):
    """Take exactly T legal steps from the start and stand on the goal at the end.

    Attributes:
        T: Number of steps; from 5 on every goal can be reached from every start.
    """

    name = "walk"
    summary = "T legal steps on a 10-node graph, ending at the goal (many right answers, high entropy)"
    T: int = integer(12, minimum=5, maximum=64)

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
        legal = _legal_steps(prompts[:, 0], responses)
        return ((legal & mask).all(1) & (responses[:, -1] == prompts[:, 1])).double()

    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        """Random walks whose last node is the goal."""
        nodes, prompts = _random_walks(seed, batch, count, self.T)
        prompts[:, 1] = nodes[:, -1]
        return Demonstrations(prompts, nodes, torch.ones(count, self.T, dtype=torch.bool))


@dataclass(frozen=True, kw_only=True)
class WalkEos(_Graph):
    """Walk legally from the start and stop, with the end token, on the goal: 4 to 24 tokens, end included."""

    name = "walk-eos"
    summary = "a legal walk that the policy itself ends on the goal; 4 to 24 tokens (variable length)"
    shortest: ClassVar[int] = 4
    eos = _EOS

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
        walking = mask & ~ended
        legal = (_legal_steps(prompts[:, 0], responses) | ~walking).all(1)
        last = (
            torch.cat([prompts[:, :1], responses], dim=1).gather(1, (lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
        )
        return (legal & ended.any(1) & (last == prompts[:, 1]) & (lengths >= self.shortest)).double()

    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        """Random walks of uniform length whose last node is the goal, then the end token."""
        T = self.max_response
        nodes, prompts = _random_walks(seed, batch, count, T - 1)
        spread = integers(uniforms(seed, "demonstration lengths", batch, count, 1), T - self.shortest + 1)
        steps = spread + self.shortest - 1  # [count, 1], end token not counted
        prompts[:, 1:2] = nodes.gather(1, steps - 1)
        positions = torch.arange(T)
        responses = torch.cat([nodes, nodes[:, -1:]], dim=1).where(positions < steps, _EOS)
        return Demonstrations(prompts, responses, positions <= steps)


def _legal_steps(start: Tensor, responses: Tensor) -> Tensor:
    """Bool [B, T]: token t is a node and follows an edge from the node before it (the start [B] for the first)."""
    before = torch.cat([start.unsqueeze(1), responses[:, :-1]], dim=1)
    difference = (responses - before) % NODES
    legal = (difference == STEPS[0]) | (difference == STEPS[1]) | (difference == STEPS[2])
    return legal & (responses < NODES) & (before < NODES)


def _random_walks(seed: int, batch: int, count: int, length: int) -> tuple[Tensor, Tensor]:
    """Uniform random walks, int64 [count, length], and prompts [count, 3] in which the goal is not set yet."""
    draws = uniforms(seed, "demonstrations", batch, count, length + 1)
    start = integers(draws[:, :1], NODES)
    steps = torch.tensor(STEPS)[integers(draws[:, 1:], len(STEPS))]
    prompts = torch.cat([start, start, torch.full_like(start, _PROMPT_END)], dim=1)
    return (start + steps.cumsum(1)) % NODES, prompts
