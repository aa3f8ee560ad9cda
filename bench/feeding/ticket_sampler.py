"""Sampling by tickets: groups of any batches in one call, under one version of the weights.

Ticket number `batch * P + group` stands for one prompt of one batch and its G responses.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.regimes.base import CellShape
from vcpo_bench.bench.regimes.service_times import ServiceTimes
from vcpo_bench.bench.samplers.published import PublishedPolicy
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.records.step_facts import EPISODE_FACTS


class TicketSampler:
    """Samples tickets. Prompt and random numbers of a ticket depend on seed, batch and group only.

    Args:
        config: The cell.
        task: Its task.
        published: The policy to sample from.
    """

    def __init__(self, config: CellConfig, task: Task, published: PublishedPolicy) -> None:
        self.config, self.task, self.published = config, task, published
        self._inputs: dict[int, tuple[Tensor, Tensor]] = {}

    def run(self, tickets: Sequence[int], version: int) -> dict[int, Trajectories]:
        """The group of each ticket, `[1, G, T]`, under the published weights, which have seen `version` updates."""
        P, G, T = self.config.prompts, self.config.responses, self.task.max_response
        inputs = [self._of(*divmod(ticket, P)) for ticket in tickets]
        prompts = torch.cat([prompt for prompt, _ in inputs])
        rollout = self.published.generate(prompts, torch.cat([noise for _, noise in inputs]), self.task)
        reward = self.task.reward(prompts, rollout.responses, rollout.mask)
        learner_routes = self.published.learner_routes(prompts, rollout)
        stamps = torch.full_like(rollout.responses, version) if rollout.version is None else rollout.version
        found = {}
        for index, ticket in enumerate(tickets):
            rows = slice(index * G, (index + 1) * G)
            batch, group = divmod(ticket, P)
            logp = self.published.report(rollout.logp[rows], rollout.mask[rows], batch, group * G)
            found[ticket] = Trajectories(
                index=batch,
                prompts=prompts[index : index + 1],
                responses=rollout.responses[rows].view(1, G, T),
                behavior_logp=logp.view(1, G, T),
                mask=rollout.mask[rows].view(1, G, T),
                reward=reward[rows].view(1, G),
                version=stamps[rows].view(1, G, T),
                origin=torch.tensor([[batch, group]]),
                episodes=None if rollout.episodes is None else rollout.episodes[rows].unsqueeze(0),
                routes=None if rollout.routes is None else rollout.routes[rows].unsqueeze(0),
                learner_routes=None if learner_routes is None else learner_routes[rows].unsqueeze(0),
                kept=None if rollout.kept is None else rollout.kept[rows].unsqueeze(0),
                router_logp=None if rollout.router_logp is None else rollout.router_logp[rows].unsqueeze(0),
            )
        return found

    def _of(self, batch: int, group: int) -> tuple[Tensor, Tensor]:
        """Prompt `[1, Lp]` and uniform random numbers `[G, T]` of a group."""
        P, G = self.config.prompts, self.config.responses
        if batch not in self._inputs:
            self._inputs = {known: kept for known, kept in self._inputs.items() if known > batch - 8}
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
