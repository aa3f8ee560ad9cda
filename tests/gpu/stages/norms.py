"""Stage 5: are exact score norms right on the device, and what do they cost there? Llamas with random weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from kit import Failed, Result, Setup, broken, launched, peak_memory, release, said, seconds_of
from torch import Tensor

from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.score_norms.vocabulary import CHUNK_BYTES
from vcpo_bench.bench.trajectories import Responses

PROMPT = 64


@dataclass(frozen=True)
class Shape:
    """A random Llama with a tied head, and a batch.

    Attributes:
        layers: Number of layers.
        width: Hidden width.
        vocabulary: Number of tokens.
        rows: Trajectories.
        tokens: Tokens of each.
        shared: Heads of keys and values; 0: as many as others.
        chunk: Bytes of logits that the head computes at once.
    """

    layers: int
    width: int
    vocabulary: int
    rows: int
    tokens: int
    shared: int = 0
    chunk: int = CHUNK_BYTES


SMOLLM2 = Shape(30, 576, 49152, rows=64, tokens=60, shared=3)
"""Its shape, and the batch of the first study of it."""
SMALL = Shape(8, 512, 49152, rows=4, tokens=256)
TINY = Shape(2, 64, 128, rows=3, tokens=24, chunk=2**14)
"""As in `SMALL`, the head computes all rows in chunks, and each alone at once: one way checks the other."""

TOLERANCES = {"float32 against one by one": 1e-3, "bfloat16 against one by one": 5e-2, "float32 against float64": 1e-3}
"""Relative errors of squared norms."""


def measure(setup: Setup) -> Result:
    """Errors of the norms, then seconds, peak memory, launches and waits of a step with them, and of one without.

    Raises:
        Failed: A norm is wrong, or a step raised.
    """
    found = _errors(setup)
    setup.keep(found)
    failed = [
        f"{name}: norms are off by {found[name]:.1e}" for name, most in TOLERANCES.items() if not found[name] <= most
    ]
    release(setup.device)
    torch.manual_seed(0)
    shape = setup.pick(SMOLLM2, TINY)
    network = _network(shape).to(setup.device)
    ways = Ways(network, shape, setup.device, torch.bfloat16)
    found |= {"parameters": sum(p.numel() for p in network.parameters()), **vars(shape), "ways": []}
    ways.make_state()
    for work in (ways.plain, ways.bookkeeping):
        with warnings.catch_warnings(record=True) as heard:  # such as that it takes one pass per trajectory
            warnings.simplefilter("always")
            row = {"way": work.__name__} | _costs(setup, ways, work)
        row["warnings"] = " | ".join(sorted({str(one.message) for one in heard}))
        if row.get("error"):
            failed.append(f"{row['way']}: {row['error']}")
        found["ways"].append(row)
        setup.keep(found)
        if broken(setup.device):
            break
    if failed:
        raise Failed("; ".join(failed), found)
    return found


def _errors(setup: Setup) -> Result:
    """Relative error of the norms: bfloat16 and float32 against one trajectory per backward pass, and float64."""
    torch.manual_seed(0)
    shape = setup.pick(SMALL, TINY)
    network = _network(shape).to(setup.device)
    found: Result = {}
    for dtype in (torch.float32, torch.bfloat16):
        ways = Ways(network, shape, setup.device, dtype)
        found[f"{str(dtype)[6:]} against one by one"] = _error(ways.squared(), ways.one_by_one())
    exact = Ways(network.double(), shape, setup.device, torch.float32).one_by_one()
    single = Ways(network.float(), shape, setup.device, torch.float32).squared()
    return found | {"float32 against float64": _error(single, exact)}


class Ways:
    """One update, with a norm-weighted baseline and without."""

    def __init__(self, network: Any, shape: Shape, device: str, dtype: torch.dtype) -> None:
        self.policy = CausalPolicy(network, 0, dtype)
        self.policy.chunked_head.vocabulary.chunk_bytes = shape.chunk
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


def _costs(setup: Setup, ways: Ways, work: Callable[[], None]) -> Result:
    """Seconds, GiB, launches and waits of one way, or its error; the others are measured all the same."""
    found: Result = {}
    try:
        with peak_memory(setup.device) as gib:
            first, *later = (seconds_of(setup.device, work) for _ in range(4))
        found = {"first": first, "seconds": min(later), "peak_gib": gib["peak"], "above_held_gib": gib["above"]}
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
        tie_word_embeddings=True,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config)


def _error(found: Tensor, exact: Tensor) -> float:
    """Largest relative error of squared norms [rows]."""
    found, exact = found.double().cpu(), exact.double().cpu()
    return float(((found - exact).abs() / exact).max())
