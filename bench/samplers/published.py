"""The policy a sampler really runs: the weights published last, as an inference engine holds them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.conversation import draw
from vcpo_bench.bench.samplers.base import Engine, InflightEngine, PolicyEngine
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.trajectories import Rollout


class PublishedPolicy:
    """The sampler's copy of the policy, and how it differs from the learner's.

    Args:
        policy: The learner's policy.
        publish_every: Updates between two publications of its weights.
        noise: `off`; `bf16` or `int8`: weights are rounded (the arithmetic stays float32), so that samples and reported
            log-probabilities are those of another policy; a number: reported log-probabilities carry Gaussian noise of
            that standard deviation, in nats per token.
        seed: Seed of the noise.
        external: Engine or server that samples; None: a policy in this process does.

    Attributes:
        sampler: Draws responses; reads the learner's own weights where no copy is needed.
        inflight: The external sampler, which keeps responses in flight itself; else None.
    """

    def __init__(
        self, policy: Policy, publish_every: int, noise: str, seed: int, external: InflightEngine | None = None
    ) -> None:
        self._source, self._every, self._seed = policy, publish_every, seed
        self._rounding = noise if noise in ("bf16", "int8") else ""
        self._sigma = 0.0 if noise in ("off", "bf16", "int8") else float(noise)
        self.inflight = external
        self._own = PolicyEngine(policy, copied=external is None and (publish_every > 1 or bool(self._rounding)))
        self.sampler: Engine = external or self._own

    @property
    def policy(self) -> Policy:
        """The policy in this process that is sampled from, where no external sampler is."""
        return self._own.model

    def publish(self, update: int) -> None:
        """Give the sampler the learner's weights, where they are published before this update.

        Raises:
            RuntimeError: The sampler reports that it cannot sample.
        """
        if trouble := self.sampler.health():
            raise RuntimeError(f"sampler: {trouble}")
        if update % self._every == 0:
            self.sampler.set_weights(self._weights(), update)

    def _weights(self) -> Iterator[tuple[str, Tensor]]:
        return ((name, rounded(weight, self._rounding)) for name, weight in self._source.named_parameters())

    def generate(self, prompts: Tensor, noise: Tensor, task: Task) -> Rollout:
        """Responses as `Engine.generate` draws them, or as the task's environment and the policy write them."""
        if task.environment is not None:
            return draw(self.policy, task.environment, prompts, noise, task.eos)
        return self.sampler.generate(prompts, noise, task.eos)

    def close(self) -> None:
        """Release the sampler."""
        self.sampler.close()

    def report(self, logp: Tensor, mask: Tensor, batch: int, first: int = 0) -> Tensor:
        """Log-probabilities `[B, T]` as the engine reports them, of a batch's trajectories from number `first` on."""
        if not self._sigma:
            return logp
        rows, T = logp.shape
        draws = torch.from_numpy(uniforms(self._seed, "engine noise", batch, first + rows, T))[first:]
        normal = torch.special.ndtri(draws.clamp_min(2.0**-54)).to(logp.dtype)
        return torch.where(mask, logp + self._sigma * normal, logp)

    def tensors(self) -> dict[str, Tensor]:
        """The weights, for a checkpoint, where they are a copy."""
        return dict(self.policy.named_parameters()) if self._own.copied else {}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Load what `tensors` returned."""
        self._own.set_weights(tensors.items(), self._own.version)


def rounded(weight: Tensor, to: str) -> Tensor:
    """A weight as a low-precision engine holds it: bfloat16, or int8 with one scale per output row of a matrix."""
    if to == "bf16":
        return weight.to(torch.bfloat16).to(weight.dtype)
    if to == "int8" and weight.ndim == 2:
        scale = weight.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
        return (weight / scale).round() * scale
    return weight
