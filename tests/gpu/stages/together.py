"""Stage 8: several cells on one GPU in one process, each with a thread, a stream and graphs of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import torch
from kit import Result, Setup, Skipped, seconds_of

from stages.launches import draw, random_policy
from vcpo_bench.bench.policies.hf.graph_loop import GraphLoop
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.policies.hf.sampling import SamplingOptions
from vcpo_bench.bench.trajectories import Responses

BATCHES = 3


class Cell:
    """A policy that is sampled from and trained on batches of `rows` responses, with a stream of its own."""

    def __init__(self, device: str, policy: CausalPolicy, rows: int, length: int) -> None:
        policy.sampling = SamplingOptions(GraphLoop())
        self._policy, self._asked = policy, draw(rows, length, 0)
        self._stream = torch.cuda.Stream() if device.startswith("cuda") else None

    def batches(self, count: int) -> None:
        """Draw and score batches, and compute gradients."""
        with ExitStack() as stack:
            if self._stream is not None:
                stack.enter_context(torch.cuda.stream(self._stream))
            for _ in range(count):
                drawn = self._policy.sample(self._asked)
                scores = self._policy.score(Responses(self._asked.prompts, drawn.responses, drawn.mask))
                scores.logp.sum().backward()
                self._policy.zero_grad()


def measure(setup: Setup) -> Result:
    """Batches per second of 1, 2, 4 and 8 cells that share the device."""
    if setup.device.startswith("mock"):
        raise Skipped("the mock device exists in one thread only")
    found: Result = {"together": []}
    rows, length = setup.pick((64, 64), (16, 6))  # eight fit into 80 GB
    cells: list[Cell] = []
    for count in setup.pick((1, 2, 4, 8), (1, 2)):
        while len(cells) < count:
            cells.append(Cell(setup.device, random_policy(setup), rows, length))
            cells[-1].batches(1)  # captures, one after another
        with ThreadPoolExecutor(count) as pool:
            seconds = seconds_of(setup.device, partial(_all, pool, cells[:count]))
        rate = count * BATCHES / seconds
        found["together"].append({"cells": count, "batches_per_second": rate, "seconds": seconds})
        setup.keep(found)
    return found


def _all(pool: ThreadPoolExecutor, cells: list[Cell]) -> None:
    for future in [pool.submit(cell.batches, BATCHES) for cell in cells]:
        future.result()
