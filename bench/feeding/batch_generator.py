"""Carrying out a schedule's sampling orders: whole batches, some trajectories of a batch, or a few tokens of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.policies.base import Decoding
from vcpo_bench.bench.policies.conversation import Conversation
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.regimes.base import Order
from vcpo_bench.bench.samplers.engines.base import InflightEngine, Segment
from vcpo_bench.bench.samplers.engines.published import PublishedPolicy
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.trajectories import Rollout, Trajectories


@dataclass(slots=True)
class Draft:
    """A batch in progress: its rollout so far, the version of each token, and its KV cache where that is kept.

    Attributes:
        asked: What is drawn: its prompts and numbers.
        rollout: `[B, T]` tensors, filled in place.
        version: int64 `[B, T]`, updates seen by the weights that drew each token; -1: not drawn yet.
        missing: Tokens not drawn yet, padding included.
        decoder: KV cache of the responses in flight; None where it is not kept.
        talk: The episodes in flight, where the task has an environment.
    """

    asked: Draw
    rollout: Rollout
    version: Tensor
    missing: int
    decoder: Decoding | None = None
    talk: Conversation | None = None


class BatchGenerator:
    """Samples what a schedule orders. Prompts and random numbers depend on the seed and the batch only.

    Args:
        config: The cell.
        task: Its task.
        published: The policy to sample from.
        keep_cache: Whether responses in flight keep the KV cache of the old weights after a weight update.
    """

    def __init__(self, config: CellConfig, task: Task, published: PublishedPolicy, keep_cache: bool = True) -> None:
        self.config, self.task, self.published, self.keep_cache = config, task, published, keep_cache
        self.drafts: dict[int, Draft] = {}

    def run(self, orders: Sequence[Order], version: int, groups: Sequence[int]) -> list[Trajectories]:
        """Carry out sampling orders with the published weights.

        Args:
            orders: The orders, carried out in this order.
            version: Updates the published weights have seen.
            groups: Number of prompts in the batch of each order.

        Returns:
            The batches completed by these orders, by increasing index.
        """
        self.begin(orders, groups)
        self._rows([order for order in orders if order.rows is not None], version)
        planned = [order for order in orders if order.rows is None]
        if self.published.inflight and any(len(self._positions(order)) < self.task.max_response for order in planned):
            self._advance(self.published.inflight, planned, version)
        else:
            for order in planned:
                self._tokens(self.drafts[order.batch], order, version)
        done = sorted(batch for batch, draft in self.drafts.items() if not draft.missing)
        return [self._complete(batch) for batch in done]

    def begin(self, orders: Sequence[Order], groups: Sequence[int]) -> list[Draft]:
        """The drafts of the batches that orders draw tokens of, with prompts and noise; `run` then draws them."""
        for order, count in zip(orders, groups, strict=True):
            if order.batch not in self.drafts:
                self.drafts[order.batch] = self._draft(order.batch, count)
        return [self.drafts[order.batch] for order in orders]

    def _draft(self, batch: int, groups: int) -> Draft:
        T, rows = self.task.max_response, groups * self.config.responses
        prompts, environment = self.task.training_prompts(self.config.seed, batch, groups), self.task.environment
        noise = torch.from_numpy(uniforms(self.config.seed, "sampling", batch, rows, T))
        asked = self.published.asked(prompts, noise, self.task)
        talk = None if environment is None else Conversation(environment, prompts, rows, T)
        rollout = self.published.policy.empty_rollout(asked)
        return Draft(
            asked=asked,
            rollout=rollout if talk is None else replace(rollout, episodes=talk.facts()),
            version=torch.full((rows, T), -1, dtype=torch.int64),
            missing=rows * T,
            talk=talk,
        )

    def _tokens(self, draft: Draft, order: Order, version: int) -> None:
        """Draw the tokens `start..stop` of every trajectory."""
        rows, T = draft.version.shape
        positions = self._positions(order)
        if len(positions) == T:
            draft.rollout = self.published.generate(draft.asked.prompts, draft.asked.uniforms, self.task)
        else:
            decoder = self._decoder(draft, positions.start)
            self._extend(draft, decoder, positions)
            draft.decoder = decoder if self.keep_cache and positions.stop < T else None
        stamps = draft.rollout.version
        draft.version[:, positions.start : positions.stop] = version if stamps is None else stamps
        draft.missing -= rows * len(positions)

    def _extend(self, draft: Draft, decoder: Decoding, positions: range) -> None:
        """Draw tokens of responses in flight; without a kept cache the decoder counts those before to its prompts."""
        policy = self.published.policy
        if draft.talk is None:
            policy.extend(draft.rollout, decoder, draft.asked, positions)
        else:
            draft.talk.extend(policy, draft.rollout, decoder, draft.asked, positions)
            draft.rollout = replace(draft.rollout, episodes=draft.talk.facts())

    def _positions(self, order: Order) -> range:
        T = self.task.max_response
        return range(order.start, T if order.stop is None else min(order.stop, T))

    def _advance(self, sampler: InflightEngine, orders: Sequence[Order], version: int) -> None:
        """Carry out the orders of all batches in flight together: an engine step draws a token for each of them."""
        drafts = [(self.drafts[order.batch], order.batch, self._positions(order)) for order in orders]
        segments = [
            Segment(batch, d.asked.prompts, d.asked.uniforms, d.rollout, part, d.talk) for d, batch, part in drafts
        ]
        sampler.advance(segments, self.task.eos, self.keep_cache)
        for draft, _, positions in drafts:
            draft.version[:, positions.start : positions.stop] = version
            draft.missing -= len(draft.version) * len(positions)
            if draft.talk is not None:
                draft.rollout = replace(draft.rollout, episodes=draft.talk.facts())

    def _decoder(self, draft: Draft, start: int) -> Decoding:
        rows, T = draft.version.shape
        if draft.decoder is not None:
            draft.decoder.reload()
            return draft.decoder
        prompts = draft.asked.prompts
        if start:  # the new weights recompute the cache of all tokens so far
            prompts = prompts.repeat_interleave(rows // len(prompts), dim=0)
            prompts = torch.cat([prompts, draft.rollout.responses[:, :start]], dim=1)
        return self.published.policy.decoding(prompts, rows, T - start)

    def _rows(self, orders: Sequence[Order], version: int) -> None:
        """Draw whole responses for some trajectories of several batches, in one call."""
        if not orders:
            return
        picked = [(self.drafts[order.batch], torch.tensor(order.rows)) for order in orders]
        G = self.config.responses
        prompts = torch.cat([draft.asked.prompts[rows // G] for draft, rows in picked])
        noise = torch.cat([draft.asked.uniforms[rows] for draft, rows in picked])
        rollout = self.published.generate(prompts, noise, self.task)
        begin = 0
        for draft, rows in picked:
            drawn = rollout.take(slice(begin, begin + len(rows)))
            draft.rollout.put(rows, drawn)
            draft.version[rows] = version if drawn.version is None else drawn.version
            draft.missing -= len(rows) * draft.version.shape[1]
            begin += len(rows)

    def _complete(self, batch: int) -> Trajectories:
        draft = self.drafts.pop(batch)
        drawn, prompts = draft.rollout, draft.asked.prompts
        reward = self.task.reward(prompts, drawn.responses, drawn.mask)
        drawn = replace(drawn, logp=self.published.report(drawn.logp, drawn.mask, batch), version=draft.version)
        return drawn.grouped(batch, prompts, reward)

    def tensors(self) -> dict[str, Tensor]:
        """All batches in progress, for a checkpoint."""
        tensors: dict[str, Tensor] = {}
        for batch, draft in self.drafts.items():
            named = draft.rollout.tensors() | {"version": draft.version}
            if draft.decoder is not None:
                position = draft.decoder.position  # the cache behind it is memory that nothing has written yet
                named |= {f"cache{n}": cache[:, :, :, :position] for n, cache in enumerate(draft.decoder.caches)}
                named["position"] = torch.tensor(position)
            tensors |= {f"{batch}/{name}": tensor.clone() for name, tensor in named.items()}
        return tensors

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Load what `tensors` returned."""
        self.drafts = {}
        for batch in sorted({int(name.split("/")[0]) for name in tensors}):
            named = {name.split("/")[1]: tensor for name, tensor in tensors.items() if name.startswith(f"{batch}/")}
            draft = self._draft(batch, len(named["version"]) // self.config.responses)
            draft.version = named["version"]
            draft.rollout = Rollout(**{name: named[name] for name in draft.rollout.tensors().keys() & named.keys()})
            draft.missing = int((draft.version < 0).sum())
            if draft.talk is not None:
                draft.talk.replay(draft.rollout, int((draft.version[0] >= 0).sum()))
            if "position" in named:
                draft.decoder = self.published.policy.decoding(draft.asked.prompts, *draft.version.shape)
                draft.decoder.position = position = int(named["position"])
                with torch.inference_mode():
                    for layer, cache in enumerate(draft.decoder.caches):
                        cache[:, :, :, :position] = named[f"cache{layer}"][:, :, :, :position]
            self.drafts[batch] = draft
