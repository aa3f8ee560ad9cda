"""Sampling by tickets: groups of any batches in one call, under one version of the weights.

Ticket number `batch * P + group` stands for one prompt of one batch and its G responses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.regimes.base import CellShape
from vcpo_bench.bench.regimes.service_times import ServiceTimes
from vcpo_bench.bench.samplers.engines.published import PublishedPolicy
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.records.step_facts import EPISODE_FACTS


class TicketSampler:
    """Samples tickets. Prompt and random numbers of a ticket depend on seed, batch and group only."""

    def __init__(self, config: CellConfig, task: Task, published: PublishedPolicy) -> None:
        self.config, self.task, self.published = config, task, published
        self._inputs: dict[int, tuple[Tensor, Tensor]] = {}

    def run(self, tickets: Sequence[int], version: int) -> dict[int, Trajectories]:
        """The group of each ticket, `[1, G, T]`, under the published weights, which have seen `version` updates."""
        P, G = self.config.prompts, self.config.responses
        inputs = [self._of(*divmod(ticket, P)) for ticket in tickets]
        prompts = torch.cat([prompt for prompt, _ in inputs])
        drawn = self.published.generate(prompts, torch.cat([noise for _, noise in inputs]), self.task)
        reward = self.task.reward(prompts, drawn.responses, drawn.mask)
        if drawn.version is None:
            drawn = replace(drawn, version=torch.full_like(drawn.responses, version))
        sampled = {}
        for index, ticket in enumerate(tickets):
            rows, (batch, group) = slice(index * G, (index + 1) * G), divmod(ticket, P)
            rollout = drawn.take(rows)
            rollout = replace(rollout, logp=self.published.report(rollout.logp, rollout.mask, batch, group * G))
            origin = torch.tensor([[batch, group]])
            sampled[ticket] = rollout.grouped(batch, prompts[index : index + 1], reward[rows], origin)
        return sampled

    def _of(self, batch: int, group: int) -> tuple[Tensor, Tensor]:
        """Prompt `[1, Lp]` and uniform random numbers `[G, T]` of a group."""
        P, G = self.config.prompts, self.config.responses
        if batch not in self._inputs:
            self._inputs = {index: inputs for index, inputs in self._inputs.items() if index > batch - 8}
            noise = uniforms(self.config.seed, "sampling", batch, P * G, self.task.max_response)
            self._inputs[batch] = (self.task.training_prompts(self.config.seed, batch, P), torch.from_numpy(noise))
        prompts, draws = self._inputs[batch]
        return prompts[group : group + 1], draws[group * G : (group + 1) * G]


def service_time(times: ServiceTimes, shape: CellShape, ticket: int, group: Trajectories) -> float:
    """How long a sampled group `[1, G, T]` takes, from the tokens drawn for it and the calls it made."""
    length = int(group.mask.sum(-1).max())
    if group.episodes is None:
        return times.group(shape, ticket, length)
    return times.group(shape, ticket, length, group.episodes[0, :, EPISODE_FACTS.index("calls")].tolist())
