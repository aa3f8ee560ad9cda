"""Stage 1: what graphs would give the tiny policy: a rollout as one, score and backward pass as two, AdamW as one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import torch
from kit import Failed, Result, Setup, fastest

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.captured import Step, cuda_graph, eager
from vcpo_bench.bench.policies.tiny import sampling
from vcpo_bench.bench.trajectories import Responses, Rollout

TOLERANCE = 1e-5
"""Relative l2 error of a gradient, a graph against its kernels one by one."""


class Update:
    """The parts of an update of the tiny policy, 8 responses each, on tensors that stay where they are; no method."""

    def __init__(self, device: str, prompts: int) -> None:
        config = CellConfig(method="clip", staleness=0, seed=0, task="walk")
        task = open_task(config, None)
        self.policy = open_policy(config, task, None, device)
        length, rows = task.max_response, 8 * prompts
        generator = torch.Generator().manual_seed(0)
        uniforms = torch.rand(rows, length, dtype=torch.float64, generator=generator)
        self.asked = Draw(task.training_prompts(0, 0, prompts), uniforms, task.eos)
        self._here = Draw(self.asked.prompts.to(device), uniforms.to(device), task.eos)
        empty = self.policy.empty_rollout(self.asked)
        self.drawn = Rollout(**{name: tensor.to(device) for name, tensor in empty.tensors().items()})
        self.coefficients = torch.randn(rows, length, generator=generator).to(device)
        self.logp = torch.empty(0)
        rate = torch.tensor(0.0, device=device)  # equal weights before and after, so that results can be compared
        self.optimizer = torch.optim.AdamW(
            self.policy.trainable(), lr=rate, fused=True, capturable=device.startswith("cuda")
        )

    def rollout(self) -> None:
        """Draw all tokens of all responses; none is dropped before the last position."""
        self.drawn.mask.fill_(True)
        draw = self._here
        with patch.object(sampling, "looks", lambda *_: False):
            decoding = self.policy.decoding(draw.prompts, draw.rows, draw.length)
            self.policy.extend(self.drawn, decoding, draw, range(draw.length))

    def score(self) -> None:
        """Log-probabilities of what was drawn, with their graph for the backward pass."""
        self.logp = torch.empty(0)  # weights remember the stream of the oldest pass that lives: it must be a capture's
        self.logp = self.policy.score(Responses(self._here.prompts, self.drawn.responses, self.drawn.mask)).logp

    def backward(self) -> None:
        """Gradients of the weights, into tensors that stay."""
        weights = self.policy.trainable()
        found = torch.autograd.grad(self.logp, weights, self.coefficients, retain_graph=True)
        for weight, gradient in zip(weights, found, strict=True):
            weight.grad = gradient

    def step(self) -> None:
        """AdamW."""
        self.optimizer.step()

    def clear(self) -> None:
        """Forget tokens and gradients in place, so that a replay that does nothing is noticed."""
        self.drawn.responses.fill_(-1)
        for weight in self.policy.trainable():
            if weight.grad is not None:
                weight.grad.zero_()

    def gradient(self) -> torch.Tensor:
        """The gradients as one vector, a copy."""
        return torch.cat([w.grad.flatten() for w in self.policy.trainable() if w.grad is not None])


def measure(setup: Setup) -> Result:
    """Milliseconds of each part, kernels one by one and as a graph; the product's own rollout beside them.

    Raises:
        Failed: A graph draws other tokens, or its gradient is another.
    """
    update = Update(setup.device, setup.pick(16, 2))
    repeats = setup.pick(20, 1)

    def milliseconds(work: Callable[[], object]) -> float:
        return 1e3 * fastest(setup.device, work, repeats)

    own = milliseconds(lambda: update.policy.sample(update.asked))
    found: Result = {"product_rollout_ms": own, "parts": []}
    wanted = update.policy.sample(update.asked)
    capture = partial(cuda_graph, torch.device(setup.device)) if setup.device.startswith("cuda") else eager
    gradient, replays = None, dict[str, Step]()
    for part in (update.rollout, update.score, update.backward, update.step):
        one_by_one = milliseconds(part)
        if part == update.backward:
            gradient = update.gradient()
        replays[part.__name__] = capture(part)
        row = {"part": part.__name__, "eager_ms": one_by_one, "graph_ms": milliseconds(replays[part.__name__])}
        found["parts"].append(row)
        setup.keep(found)
    update.clear()
    for replay in replays.values():
        replay()
    assert gradient is not None
    tokens = torch.equal(update.drawn.responses.cpu()[wanted.mask], wanted.responses[wanted.mask])
    error = float((update.gradient() - gradient).norm() / gradient.norm())
    found |= {"same_tokens": tokens, "gradient_error": error}
    if not (tokens and error <= TOLERANCE):
        raise Failed("a graph differs from its kernels one by one", found)
    return found
