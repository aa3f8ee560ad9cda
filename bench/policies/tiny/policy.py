"""The built-in tiny policy: the tiny network with the interface of a policy on top."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vcpo_bench.bench.policies.base import Decoding, Policy
from vcpo_bench.bench.policies.scores import DenseScores
from vcpo_bench.bench.policies.tiny.decoding import Decoder
from vcpo_bench.bench.policies.tiny.network import Transformer
from vcpo_bench.bench.policies.tiny.sampling import extend, sample
from vcpo_bench.bench.policies.tiny.scoring import score
from vcpo_bench.bench.policies.truncation import Truncation
from vcpo_bench.bench.trajectories import Rollout


class TinyPolicy(Transformer, Policy):
    """The tiny network as a policy; made like the network, from a `PolicyConfig` and the seed of its weights."""

    def score(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, prompts: Tensor, responses: Tensor, mask: Tensor, kept: Tensor | None = None
    ) -> DenseScores:
        """See `Policy.score`; with fewer prompts than responses, each is computed once for its group."""
        return score(self, prompts, responses, mask, kept)

    def score_rows(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, prompts: Tensor, responses: Tensor, mask: Tensor, kept: Tensor | None = None
    ) -> DenseScores:
        """See `Policy.score_rows`."""
        return score(self, prompts, responses, mask, kept)

    def sample(
        self,
        prompts: Tensor,
        uniforms: Tensor,
        eos: int | None = None,
        greedy: Tensor | None = None,
        truncation: Truncation | None = None,
    ) -> Rollout:
        """See `Policy.sample`."""
        return sample(self, prompts, uniforms, eos, greedy, truncation)

    def decoding(self, prompts: Tensor, rows: int, length: int) -> Decoder:
        """See `Policy.decoding`."""
        with torch.inference_mode():
            return Decoder(self, prompts, rows, length)

    def extend(
        self,
        rollout: Rollout,
        decoding: Decoding,
        prompts: Tensor,
        uniforms: Tensor,
        positions: range,
        eos: int | None,
        greedy: Tensor | None = None,
        truncation: Truncation | None = None,
    ) -> None:
        """See `Policy.extend`."""
        assert isinstance(decoding, Decoder)
        extend(rollout, decoding, prompts, uniforms, positions, eos, greedy, truncation)

    def output_head(self) -> nn.Linear:
        """See `Policy.output_head`."""
        return self.head
