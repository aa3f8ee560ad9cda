"""The built-in tiny policy: the tiny network with the interface of a policy on top."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vcpo_bench.bench.policies.base import Decoding, Policy
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.scores import DenseScores
from vcpo_bench.bench.policies.tiny.decoding import Decoder
from vcpo_bench.bench.policies.tiny.network import Transformer
from vcpo_bench.bench.policies.tiny.sampling import extend
from vcpo_bench.bench.policies.tiny.scoring import score
from vcpo_bench.bench.trajectories import Responses, Rollout


class TinyPolicy(Transformer, Policy):
    """The tiny network as a policy; made like the network, from a `PolicyConfig` and the seed of its weights."""

    def score(self, given: Responses) -> DenseScores:
        """See `Policy.score`; with fewer prompts than responses, each is computed once for its group."""
        return score(self, given)

    def score_rows(self, given: Responses) -> DenseScores:
        """See `Policy.score_rows`."""
        return score(self, given)

    def decoding(self, prompts: Tensor, rows: int, length: int) -> Decoder:
        """See `Policy.decoding`."""
        with torch.inference_mode():
            return Decoder(self, prompts, rows, length)

    def extend(self, rollout: Rollout, decoding: Decoding, draw: Draw, positions: range) -> None:
        """See `Policy.extend`."""
        assert isinstance(decoding, Decoder)
        extend(rollout, decoding, draw, positions)

    def output_head(self) -> nn.Linear:
        """See `Policy.output_head`."""
        return self.head
