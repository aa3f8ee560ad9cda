"""Samplers that look seldom whether responses have ended draw what those do that look at every token."""

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.policies import draw
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf import sampling as hf
from vcpo_bench.bench.policies.tiny import sampling as tiny
from vcpo_bench.bench.policies.tiny.network import PolicyConfig
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.stack import sampling as stacked
from vcpo_bench.bench.stack.network import StackedNetwork
from vcpo_bench.bench.stack.weights import StackedWeights
from vcpo_bench.bench.trajectories import Rollout

B, T, V, EOS = 12, 22, 10, 9
GENERATOR = torch.Generator().manual_seed(0)
PROMPTS = torch.randint(1, V, (4, 5), generator=GENERATOR)
TABLE = torch.randn(T, V, V, generator=GENERATOR)
ASKED = Draw(PROMPTS, torch.rand(B, T, generator=GENERATOR, dtype=torch.float64), EOS)


def tiny_policy(bias: float) -> TinyPolicy:
    policy = TinyPolicy(PolicyConfig(vocab_size=V, context=5 + T), seed=4)
    with torch.no_grad():
        policy.head.bias[EOS] += bias
    return policy


def of_tiny(bias: float) -> Rollout:
    return tiny_policy(bias).sample(ASKED)


def of_stack(bias: float) -> Rollout:
    weights = StackedWeights([tiny_policy(bias)])
    return stacked.sample(StackedNetwork(weights.config, weights.chosen([0])), [ASKED])[0]


class Slots:
    """Stands for the caches of a language model: logits follow from the last token and the position."""

    def __init__(self, model: object, slots: int, width: int) -> None:
        self.last, self.position = torch.zeros(slots, dtype=torch.int64), torch.zeros(slots, dtype=torch.int64)
        self.width = width

    def fill(self, slots: Tensor, prompts: Tensor) -> Tensor:
        self.last[slots], self.position[slots] = prompts[:, -1], 0
        return self._logits()[slots]

    def step(self, tokens: Tensor) -> Tensor:
        self.last, self.position = tokens, self.position + 1
        return self._logits()

    def keep(self, slots: Tensor) -> None:
        self.last, self.position = self.last[slots], self.position[slots]

    def _logits(self) -> Tensor:
        return TABLE[self.position.clamp(max=T - 1), self.last]


def of_refill(slots: int) -> Callable[[float], Rollout]:
    def draw(bias: float) -> Rollout:
        model: Any = SimpleNamespace(device=torch.device("cpu"), real=lambda prompts: prompts > 0)
        end = torch.zeros(V).index_fill(0, torch.tensor(EOS), bias)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hf, "Slots", Slots)
            patch.setitem(globals(), "TABLE", TABLE + end)
            return hf.refill(model, hf.TokenDraws(ASKED, model.device, V), slots)

    return draw


WAYS = {
    "tiny": (tiny, of_tiny),
    "stack": (stacked, of_stack),
    "torch": (hf, of_refill(0)),
    "torch(slots=5)": (hf, of_refill(5)),
}


@pytest.mark.parametrize(("name", "bias"), list(itertools.product(WAYS, (0.0, 1.5, 50.0))))
def test_looking_seldom_changes_no_response(name: str, bias: float, monkeypatch: pytest.MonkeyPatch) -> None:
    module, sample = WAYS[name]
    looked: list[bool] = []

    def counting(step: int, device: torch.device) -> bool:
        looked.append(draw.looks(step, device))
        return looked[-1]

    monkeypatch.setattr(module, "looks", counting)
    often, every = sample(bias), sum(looked)
    assert every == len(looked)
    looked.clear()
    monkeypatch.setattr(draw, "CHEAP", frozenset())
    seldom = sample(bias)
    assert sum(looked) <= len(looked) / 8 + 2
    assert torch.equal(seldom.responses, often.responses)
    assert torch.equal(seldom.mask, often.mask)
    for ours, theirs in ((seldom.logp, often.logp), (seldom.entropy, often.entropy)):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)  # rows are dropped at other times
    assert bias < 50 or bool((seldom.mask.sum(1) == 1).all())


def test_it_looks_at_every_token_on_a_cpu() -> None:
    cpu, there = torch.device("cpu"), torch.device("cuda")
    assert all(draw.looks(step, cpu) for step in range(20))
    assert [step for step in range(20) if draw.looks(step, there)] == [0, 8, 16]


def test_every_response_ends_where_it_should() -> None:
    rollout = of_tiny(1.5)
    ended: Tensor = rollout.responses == EOS
    assert torch.equal(rollout.mask, (ended.cumsum(1) - ended.int()) == 0)
    assert 0 < int((~rollout.mask).sum()) < rollout.mask.numel()
