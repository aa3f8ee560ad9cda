"""The policy a sampler really runs: the weights published last, as an inference engine holds them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import torch
from torch import Tensor

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.conversation import respond
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.truncation import Truncation
from vcpo_bench.bench.regimes.regime import ROUNDINGS, Regime
from vcpo_bench.bench.samplers.engines.base import Engine, InflightEngine, PolicyEngine
from vcpo_bench.bench.samplers.engines.in_turns import draw_in_turns
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.trajectories import Rollout

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class PublishedPolicy:
    """The sampler's copy of the policy, and how it differs from the learner's.

    Args:
        policy: The learner's policy.
        publish_every: Updates between two publications of its weights.
        noise: `off`; `bf16`, `fp16` or `int8`: weights are rounded (the arithmetic stays float32), so that samples and
            reported log-probabilities are those of another policy; `bf16-fp32head`: those of the output head are not;
            a number: reported log-probabilities carry Gaussian noise of that standard deviation, in nats per token.
        seed: Seed of the noise.
        external: Engine or server that samples; None: a policy in this process does.
        truncation: How the distribution of each token is cut before it is drawn; None: not by the regime.
        records_distributions: See `Policy.records_distributions`.

    Attributes:
        sampler: Draws responses; reads the learner's own weights where no copy is needed.
        inflight: The external sampler, which keeps responses in flight itself; else None.
    """

    def __init__(
        self,
        policy: Policy,
        publish_every: int,
        noise: str,
        seed: int,
        external: InflightEngine | None = None,
        truncation: Truncation | None = None,
        records_distributions: bool = False,
    ) -> None:
        self._source, self._every, self._seed = policy, publish_every, seed
        self._rounding = noise if noise in ROUNDINGS else ""
        self._sigma = 0.0 if noise in ("off", *ROUNDINGS) else float(noise)
        self.inflight, self.truncation = external, truncation
        differs = publish_every > 1 or bool(self._rounding)
        self._own = PolicyEngine(policy, external is None and differs, truncation)
        self._own.model.records_distributions = records_distributions
        self.sampler: Engine = external or self._own

    @classmethod
    def under(
        cls,
        regime: Regime,
        policy: Policy,
        seed: int,
        external: InflightEngine | None = None,
        publish_every: int = 1,
        needs: Collection[str] = (),
    ) -> PublishedPolicy:
        """The sampler as a regime wants it: with its noises and its truncation.

        Args:
            regime: The regime.
            policy: The learner's policy.
            seed: Seed of the noise.
            external: Engine or server that samples; None: a policy in this process does.
            publish_every: Updates between two publications of its weights, where they are counted here.
            needs: What the method asks for, see `Method.needs`: some of it is recorded where responses are drawn.
        """
        cut = Truncation(regime.top_p, regime.top_k, regime.mask_replay) if regime.truncates else None
        return cls(policy, publish_every, regime.engine_noise, seed, external, cut, "vocabulary_logp" in needs)

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
        precision, _, but_head = self._rounding.partition("-")
        exact = {id(weight) for weight in self._source.output_head().parameters()} if but_head else set()
        for name, weight in self._source.named_parameters():
            yield name, weight if id(weight) in exact else rounded(weight, precision)

    def generate(self, prompts: Tensor, noise: Tensor, task: Task) -> Rollout:
        """Responses as `Engine.generate` draws them, or as the task's environment and the policy write them."""
        if task.environment is None:
            return self.sampler.generate(prompts, noise, task.eos)
        if self.inflight is not None:
            return draw_in_turns(self.inflight, task.environment, prompts, noise, task.eos)
        return respond(self.policy, task.environment, self.asked(prompts, noise, task))

    def asked(self, prompts: Tensor, noise: Tensor, task: Task) -> Draw:
        """What a policy in this process is asked to draw."""
        return Draw(prompts, noise, task.eos, truncation=self.truncation)

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
    """A weight as a low-precision engine holds it: bfloat16, float16, or int8 with one scale per row of a matrix."""
    if to in _DTYPES:
        return weight.to(_DTYPES[to]).to(weight.dtype)
    if to == "int8" and weight.ndim == 2:
        scale = weight.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
        return (weight / scale).round() * scale
    return weight
