"""Sampling with one launch per token: batches of any size, drawn by a program of fixed shapes."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from vcpo_bench.bench.policies.draw import Draw, looks
from vcpo_bench.bench.policies.hf.captured import Capture, Program, bucket, cuda_graph, eager
from vcpo_bench.bench.policies.hf.network import CausalNetwork
from vcpo_bench.bench.policies.hf.sampling import WORTH_FILLING, TokenDraws
from vcpo_bench.bench.trajectories import Rollout

_ROWS = 512
"""Rows of records at first. They only become more, so that evaluations share a program with training."""


class GraphLoop:
    """A `SamplingLoop` that keeps its program from batch to batch.

    Args:
        slots: Most responses at once; 0: the largest bucket.
        capture: Turns a step into its replay; None: a CUDA graph on a GPU, the step itself elsewhere.
    """

    def __init__(self, slots: int = 0, capture: Capture | None = None) -> None:
        self._slots, self._capture = slots, capture
        self._key: tuple[Any, ...] = ()
        self._program: Program | None = None
        self._room = _ROWS

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy begins without a program: graphs cannot be copied, nor read the weights of another policy."""
        return GraphLoop, (self._slots, self._capture)

    @torch.no_grad()
    def __call__(self, model: CausalNetwork, draws: TokenDraws) -> Rollout:
        """See `SamplingLoop`."""
        program, prompts, rows = self._ready(model, draws), draws.prompts(), draws.asked.rows
        program.load(draws, min(bucket(rows), len(program.live)))
        begun, step = 0, 0
        while True:
            live = program.live[: program.slots.rows]
            if looks(step, model.device):
                free = (~live).nonzero().squeeze(1)[: rows - begun] if begun < rows else live[:0]
                if len(free) * WORTH_FILLING >= min(len(live), rows - begun) > 0:
                    new = torch.arange(begun, begun + len(free), device=model.device)
                    program.begin(free, new, prompts[new])
                    begun += len(free)
                left = int(live.sum())
                if not left and begun == rows:
                    break
                if begun == rows and bucket(left) < len(live):
                    program.keep(live.byte().argsort(descending=True, stable=True)[: bucket(left)])
            program.step()
            step += 1
        program.store(draws)
        return draws.rollout()

    def _ready(self, model: CausalNetwork, draws: TokenDraws) -> Program:
        """The program for batches like this one; a new one where shapes or the places of weights have changed."""
        asked, device = draws.asked, model.device
        room = self._room = max(self._room, asked.rows)
        width = asked.prompts.shape[1] + asked.length - 1
        where = tuple(p.data_ptr() for p in model.parameters())
        key = (room, width, asked.length, asked.eos, draws.truncation, where)
        if self._program is None or key != self._key:
            self._program = None  # frees its memory first
            slots = bucket(self._slots or _ROWS)
            static = Draw(
                asked.prompts[:0],
                torch.zeros(room + slots, asked.length, dtype=torch.float64),
                asked.eos,
                torch.zeros(room + slots, dtype=torch.bool),
                draws.truncation,
            )
            capture = self._capture or (partial(cuda_graph, device) if device.type == "cuda" else eager)
            program = Program(model, TokenDraws(static, device, draws.vocabulary), slots, width, capture)
            self._program, self._key = program, key
        return self._program
