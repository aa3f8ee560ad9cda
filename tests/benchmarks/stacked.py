"""Would many embedded cells train faster as one stack ([E, ...] weights, one call) than one after the other?

    python tests/benchmarks/stacked.py

Forward and backward of the learner, 16 prompts x 8 responses of `chain`, one thread: E policies in a loop, and the same
E through `torch.func.vmap` over their stacked weights. The gradients agree; only time differs.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from vcpo_bench.bench.devices import keep_freed_memory
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.policies.tiny.warm_start import load_warm_start
from vcpo_bench.bench.tasks import token_task

ROUNDS = 30


class Scored(nn.Module):
    """A policy whose call gives the log-probabilities [B, T]."""

    def __init__(self, policy: TinyPolicy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
        return self.policy.score(prompts, responses, mask).logp


Given = tuple[Tensor, Tensor, Tensor, Tensor]
"""Prompts [E, P, Lp], responses, mask and coefficients [E, B, T]."""


def alone(cells: Sequence[Scored], given: Given) -> None:
    """One policy after the other."""
    for cell, prompts, responses, mask, coefficients in zip(cells, *given, strict=True):
        cell.zero_grad()
        cell(prompts, responses, mask).backward(-coefficients)


def stacked(weights: Mapping[str, Tensor], base: nn.Module, given: Given) -> None:
    """All policies in one call."""
    for weight in weights.values():
        weight.grad = None
    prompts, responses, mask, coefficients = given
    logp = vmap(lambda own, *rest: functional_call(base, own, rest))(weights, prompts, responses, mask)
    logp.backward(-coefficients)


def least(run: Callable[[], object]) -> float:
    """Seconds of the fastest of several rounds: the machine disturbs upwards only."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    """Measure and print the table."""
    torch.set_num_threads(1)
    keep_freed_memory()
    task = token_task("chain")
    start = load_warm_start(task)
    print("| E | one after the other, ms per cell | stacked, ms per cell | ratio | largest difference |")
    print("|---|---|---|---|---|")
    for count in (1, 2, 4, 8, 16):
        draw = torch.Generator().manual_seed(0)
        cells = [Scored(copy.deepcopy(start)) for _ in range(count)]
        base, (weights, _) = copy.deepcopy(cells[0]).to("meta"), stack_module_state(list[nn.Module](cells))
        shape = (count, 128, task.max_response)
        responses = torch.randint(0, start.config.vocab_size, shape, generator=draw)
        prompts = task.held_out(16 * count).unflatten(0, (count, 16))
        given = (prompts, responses, torch.ones(shape, dtype=torch.bool), torch.randn(shape, generator=draw))
        one, together = (
            least(partial(alone, cells, given)) / count,
            least(partial(stacked, weights, base, given)) / count,
        )
        apart = max(
            float((weights[name].grad[i] - parameter.grad).abs().max() / parameter.grad.abs().max())
            for i, cell in enumerate(cells)
            for name, parameter in cell.named_parameters()
            if parameter.grad is not None
        )
        print(f"| {count} | {one * 1e3:.1f} | {together * 1e3:.1f} | {together / one:.2f} | {apart:.0e} |", flush=True)


if __name__ == "__main__":
    main()
