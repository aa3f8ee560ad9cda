"""Engines: what draws responses while a cell runs, in this process or in an inference engine."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.conversation import Conversation
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.truncation import Truncation
from vcpo_bench.bench.trajectories import Rollout


class Engine(Protocol):
    """Draws responses under the weights it was given last. Token ids go in and come out, in main memory."""

    @abstractmethod
    def generate(self, prompts: Tensor, uniforms: Tensor, eos: int | None) -> Rollout:
        """One response per row of `uniforms`, as `Policy.sample` describes.

        An engine whose weights change while it works stamps every token with their version (`Rollout.version`).
        """

    @abstractmethod
    def set_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Sample from these weights from now on; they have seen `version` updates.

        Args:
            weights: Names and tensors of the policy's parameters, each of its parameter's shape.
            version: Updates they have seen.
        """

    @abstractmethod
    def health(self) -> str:
        """What is wrong with it, in one line; empty while it can sample."""

    @abstractmethod
    def close(self) -> None:
        """Release processes and memory."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Some consecutive tokens of every response of a batch in flight.

    Attributes:
        batch: Index of the batch.
        prompts: int64 [P, Lp].
        uniforms: float64 [B, T].
        rollout: [B, T] tensors with the tokens before; filled in place.
        positions: Which tokens to draw.
        talk: The episodes of its responses, where an environment answers the policy between its turns; else None.
    """

    batch: int
    prompts: Tensor
    uniforms: Tensor
    rollout: Rollout
    positions: range
    talk: Conversation | None = None


class InflightEngine(Engine, Protocol):
    """An engine that keeps responses in flight while its weights change."""

    @abstractmethod
    def advance(self, segments: Sequence[Segment], eos: int | None, keep: bool) -> None:
        """Draw the next tokens of all batches in flight, in place, under the present weights.

        Args:
            segments: One per batch; a batch not seen before begins after the tokens its rollout holds already.
            eos: Token that ends a response, or None.
            keep: Keep the KV cache of the old weights; else recompute it under the present ones. Never asked for where
                an environment answers.
        """


class PolicyEngine:
    """Samples from a policy in this process: the learner's own, or a copy that keeps older or rounded weights.

    Args:
        model: The learner's policy.
        copied: Sample from a copy.
        truncation: How distributions are cut; None: as the policy does by itself.

    Attributes:
        model: The policy it samples from.
        version: Updates its weights have seen, as it was told; a shared policy has always seen all.
    """

    def __init__(self, model: Policy, copied: bool, truncation: Truncation | None = None) -> None:
        self.copied, self.truncation, self.version = copied, truncation, 0
        # weights that ask for no gradients would be cast again for every token: autocast remembers only the others
        self.model = copy.deepcopy(model) if copied else model

    def generate(self, prompts: Tensor, uniforms: Tensor, eos: int | None) -> Rollout:
        """See `Engine`."""
        return self.model.sample(Draw(prompts, uniforms, eos, truncation=self.truncation))

    def set_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """See `Engine`; nothing is copied where the policy is shared."""
        self.version = version
        if not self.copied:
            return
        own = dict(self.model.named_parameters())
        with torch.no_grad():
            for name, weight in weights:
                own[name].copy_(weight)

    def health(self) -> str:
        """Nothing can go wrong with it."""
        return ""

    def close(self) -> None:
        """It holds nothing to release."""
