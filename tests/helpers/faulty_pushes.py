"""Samplers whose weights are not those they were pushed: one class per way that this happens."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import torch
from torch import Tensor

from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.samplers.engines.base import PolicyEngine
from vcpo_bench.bench.trajectories import Rollout

Weights = Iterable[tuple[str, Tensor]]


class CopyEngine(PolicyEngine):
    """An honest sampler with its own copy of the weights; `at` is the push that goes wrong in the others."""

    def __init__(self, model: TinyPolicy, at: int = 0) -> None:
        super().__init__(model, copied=True)
        self.at = at


class SkippedPush(CopyEngine):
    def set_weights(self, weights: Weights, version: int) -> None:
        if version != self.at:
            super().set_weights(weights, version)


class PartialPush(CopyEngine):
    """Half of the parameters arrive."""

    def set_weights(self, weights: Weights, version: int) -> None:
        known = list(weights)
        super().set_weights(known[: len(known) // 2] if version == self.at else known, version)


class RankBehind(CopyEngine):
    """The second half of the prompts goes to a rank that one push does not reach."""

    def __init__(self, model: TinyPolicy, at: int = 0) -> None:
        super().__init__(model, at)
        self.rank = SkippedPush(model, at)

    def set_weights(self, weights: Weights, version: int) -> None:
        known = list(weights)
        super().set_weights(known, version)
        self.rank.set_weights(known, version)

    def generate(self, prompts: Tensor, uniforms: Tensor, eos: int | None) -> Rollout:
        P, B = len(prompts) // 2, len(uniforms) // 2
        parts = [super().generate(prompts[:P], uniforms[:B], eos), self.rank.generate(prompts[P:], uniforms[B:], eos)]
        return Rollout(
            *(torch.cat([getattr(part, name) for part in parts]) for name in ("responses", "logp", "mask", "entropy"))
        )


class StalePrefixCache(CopyEngine):
    """Keys and values of prompts are kept over pushes."""

    def __init__(self, model: TinyPolicy, at: int = 0) -> None:
        super().__init__(model, at)
        self.seen: dict[bytes, TinyPolicy] = {}

    def generate(self, prompts: Tensor, uniforms: Tensor, eos: int | None) -> Rollout:
        assert isinstance(self.model, TinyPolicy)
        old = self.seen.setdefault(prompts.numpy().tobytes(), copy.deepcopy(self.model))
        decoding = old.decoding(prompts, *uniforms.shape)
        decoding.network, decoding.blocks = self.model, self.model.layers()
        decoding.reload()
        rollout = Rollout.empty(*uniforms.shape, eos)
        self.model.extend(rollout, decoding, Draw(prompts, uniforms, eos), range(uniforms.shape[1]))
        return rollout


FAULTS = (SkippedPush, PartialPush, RankBehind, StalePrefixCache)
