"""Stage 5: what exact score norms cost on the device, beside the other ways to get them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from kit import Failed, Result, Setup, broken, fastest, launched, peak_memory, release, said
from torch import Tensor

from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.trajectories import Responses

PROMPT = 64


@dataclass(frozen=True)
class Shape:
    """A random Llama and a batch. All but `rows` and `tokens` decide the number of parameters.

    `shared` is the number of heads of keys and values; 0: as many as others.
    """

    layers: int
    width: int
    vocabulary: int
    rows: int = 8
    tokens: int = 0
    tied: bool = False
    shared: int = 0


SIZES = {
    "100M": Shape(12, 704, 32000),
    "1B": Shape(18, 1984, 32000),
    "135M": Shape(30, 576, 49152, rows=64, tied=True, shared=3),  # SmolLM2's shape
}

TOLERANCE = 1e-3
"""Relative error of squared norms in float32 against float64."""


def measure(setup: Setup, size: str, tokens: int) -> Result:
    """Time and peak memory of every way, for one size and length."""
    full = replace(SIZES[size], tokens=tokens)
    return _compare(setup, setup.pick(full, Shape(2, 64, 128, rows=3, tokens=24, tied=full.tied)))


def exactness(setup: Setup) -> Result:
    """Relative error of the norms: float32 against float64, bfloat16 against one trajectory per backward pass."""
    torch.manual_seed(0)
    shape = setup.pick(Shape(8, 512, 4096, rows=4, tokens=256), Shape(2, 64, 128, rows=3, tokens=24))
    network = _network(shape).to(setup.device)
    found: Result = {}
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        ways = Ways(network, shape, setup.device, dtype)
        found[f"{name} against one by one"] = _error(ways.squared(), ways.one_by_one())
        setup.keep(found)
    exact = Ways(network.double(), shape, setup.device, torch.float32).one_by_one()
    single = Ways(network.float(), shape, setup.device, torch.float32).squared()
    found["float32 against float64"] = _error(single, exact)
    if not found["float32 against float64"] <= TOLERANCE:
        raise Failed(f"score norms are off by {found['float32 against float64']:.1e}", found)
    return found


class Ways:
    """One update with a norm-weighted baseline, by every way to get the norms."""

    def __init__(self, network: Any, shape: Shape, device: str, dtype: torch.dtype) -> None:
        self.policy = CausalPolicy(network, 0, dtype)
        self.norms = ScoreNorms(self.policy)
        draw = torch.Generator().manual_seed(1)
        self.prompts = torch.randint(1, shape.vocabulary, (shape.rows, PROMPT), generator=draw).to(device)
        self.responses = torch.randint(1, shape.vocabulary, (shape.rows, shape.tokens), generator=draw).to(device)
        self.mask = torch.ones_like(self.responses, dtype=torch.bool)
        self.reward = torch.rand(shape.rows, generator=draw).to(device)
        self.optimizer = torch.optim.AdamW(self.policy.trainable(), lr=1e-6, fused=device.startswith("cuda"))

    def squared(self) -> Tensor:
        """[rows] by the product's way."""
        with self.norms.record():
            logp = self.policy.score_rows(Responses(self.prompts, self.responses, self.mask)).logp
        return self.norms.squared_norms(logp, self.mask)

    def one_by_one(self) -> Tensor:
        """[rows] from one backward pass per trajectory."""
        found = []
        for row in range(len(self.prompts)):
            self.optimizer.zero_grad()
            self._logp(row).sum().backward()
            found.append(sum(p.grad.double().square().sum() for p in self.policy.trainable() if p.grad is not None))
        self.optimizer.zero_grad()
        return torch.stack([torch.as_tensor(value) for value in found])

    def plain(self) -> None:
        """A step without norms."""
        logp = self.policy.score(Responses(self.prompts, self.responses, self.mask)).logp
        logp.backward(-self._coefficients(torch.ones_like(self.reward))[:, None].expand_as(logp))
        self._step()

    def bookkeeping(self) -> None:
        """Norms, and the gradient from what they kept: what the suite does."""
        self.norms.assemble(self._coefficients(self.squared()))
        self._step()

    def second_backward(self) -> None:
        """Norms, then a forward and a backward pass for the gradient."""
        squared = self.squared()
        self.norms.release()
        logp = self.policy.score(Responses(self.prompts, self.responses, self.mask)).logp
        logp.backward(-self._coefficients(squared)[:, None].expand_as(logp))
        self._step()

    def micro_batch_of_one(self) -> None:
        """Each trajectory alone; two sums of gradients, so that the baseline can be subtracted at the end."""
        parameters = self.policy.trainable()
        sums = [[torch.zeros_like(p) for p in parameters] for _ in range(2)]
        weighted = total = torch.zeros((), device=self.reward.device)
        for row, reward in enumerate(self.reward):
            self._logp(row).sum().backward()
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
            squared = torch.stack([g.square().sum() for g in gradients]).sum()
            weighted, total = weighted + squared * reward, total + squared
            for first, second, gradient in zip(*sums, gradients, strict=True):
                first.add_(gradient * reward)
                second.add_(gradient)
            self.optimizer.zero_grad()
        for parameter, first, second in zip(parameters, *sums, strict=True):
            parameter.grad = second * (weighted / total) - first
        self._step()

    def make_state(self) -> None:
        """Have the optimizer make its moments, or the first way alone would pay for what every way holds."""
        for parameter in self.policy.trainable():
            parameter.grad = torch.zeros_like(parameter)
        self._step()

    def drop(self) -> None:
        """Release what an update that failed has left."""
        self.norms.release()
        self.optimizer.zero_grad()

    def _coefficients(self, squared: Tensor) -> Tensor:
        squared = squared.to(self.reward.dtype)
        return self.reward - (squared * self.reward).sum() / squared.sum()

    def _logp(self, row: int) -> Tensor:
        one = slice(row, row + 1)
        return self.policy.score_rows(Responses(self.prompts[one], self.responses[one], self.mask[one])).logp

    def _step(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()


def _compare(setup: Setup, shape: Shape) -> Result:
    torch.manual_seed(0)
    network = _network(shape).to(setup.device)
    ways = Ways(network, shape, setup.device, torch.bfloat16)
    found: Result = {"parameters": sum(p.numel() for p in network.parameters()), **vars(shape), "ways": []}
    ways.make_state()
    failed = []
    for work in (ways.plain, ways.bookkeeping, ways.second_backward, ways.micro_batch_of_one):
        with warnings.catch_warnings(record=True) as heard:  # such as that it takes one pass per trajectory
            warnings.simplefilter("always")
            row = {"way": work.__name__} | _costs(setup, ways, work)
        row["warnings"] = " | ".join(sorted({str(one.message) for one in heard}))
        if row.get("error"):
            failed.append(f"{row['way']}: {row['error']}")
        plain = found["ways"][0].get("seconds") if found["ways"] else row.get("seconds")
        if plain and "seconds" in row:
            row["ratio"] = round(row["seconds"] / plain, 3)
        found["ways"].append(row)
        setup.keep(found)
        if broken(setup.device):
            break
    if failed:
        raise Failed("; ".join(failed), found)
    return found


def _costs(setup: Setup, ways: Ways, work: Callable[[], None]) -> Result:
    """Seconds, GiB, launches and waits of one way, or its error; the others are measured all the same."""
    found: Result = {}
    try:
        with peak_memory(setup.device) as gib:
            seconds = fastest(setup.device, work, setup.pick(3, 1))
        found = {"seconds": seconds, "peak_gib": gib["peak"], "above_held_gib": gib["above"]}
        return found | launched(setup.device, work)
    except RuntimeError as problem:  # out of memory, say
        error = said(problem)
    ways.drop()  # outside of the handler, whose traceback holds tensors
    release(setup.device)
    return found | {"error": error}


def _network(shape: Shape) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        intermediate_size=8 * shape.width // 3 // 32 * 32,
        num_hidden_layers=shape.layers,
        num_attention_heads=max(1, shape.width // 64),
        num_key_value_heads=shape.shared or max(1, shape.width // 64),
        max_position_embeddings=PROMPT + shape.tokens,
        tie_word_embeddings=shape.tied,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config)


def _error(found: Tensor, exact: Tensor) -> float:
    """Largest relative error of squared norms [rows]."""
    found, exact = found.double().cpu(), exact.double().cpu()
    return float(((found - exact).abs() / exact).max())
