"""A Hugging Face causal language model as a policy: scoring through a chunked head, and sampling."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from vcpo_bench.bench.policies.base import Decoding, Policy
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.decoding import SlotDecoding
from vcpo_bench.bench.policies.hf.network import CausalNetwork
from vcpo_bench.bench.policies.hf.sampling import SamplingOptions, TokenDraws, refill
from vcpo_bench.bench.policies.scores import ChunkedScores, DenseScores, TokenScores
from vcpo_bench.bench.policies.truncation import cut, unpack
from vcpo_bench.bench.score_norms import ChunkedHead
from vcpo_bench.bench.trajectories import Responses, Rollout


class CausalPolicy(CausalNetwork, Policy):
    """A causal language model that is trained: all of its weights, or adapters in it.

    Args:
        network: See `CausalNetwork`.
        pad: See `CausalNetwork`.
        dtype: See `CausalNetwork`.
        sampling: How its responses are drawn.
        recompute: See `CausalNetwork`.

    Raises:
        UsageError: See `CausalNetwork`.
    """

    def __init__(
        self,
        network: Any,
        pad: int,
        dtype: torch.dtype = torch.float32,
        sampling: SamplingOptions = SamplingOptions(),  # noqa: B008 - immutable
        recompute: bool = False,
    ) -> None:
        super().__init__(network, pad, dtype, recompute)
        self.sampling = sampling
        self.chunked_head = ChunkedHead(self.output_head(), dtype)

    def score(self, given: Responses) -> TokenScores:
        """See `Policy.score`; memory grows with tokens, and with tokens times vocabulary only where sets are given."""
        given = given.to(self.device)
        return self._chunked(given) if given.kept is None else self._dense(given)

    def score_rows(self, given: Responses) -> TokenScores:
        """See `Policy.score_rows`; computes all logits at once where they fit into one chunk, or sets are given."""
        given, vocabulary = given.to(self.device), self.chunked_head.vocabulary
        fit = 4 * given.responses.numel() * len(vocabulary.weight) <= vocabulary.chunk_bytes
        return self._dense(given) if fit or given.kept is not None else self._chunked(given)

    def _chunked(self, given: Responses) -> ChunkedScores:
        """Scores from a head computed in vocabulary chunks; positions after the longest response are left out."""
        length = _longest(given.mask)
        responses, counted = given.responses[:, :length], given.mask[:, :length]
        found = self.chunked_head.statistics(self.hidden(given.prompts, responses), responses, counted)
        logp, entropies, squares = (F.pad(values, (0, given.mask.shape[1] - length)) for values in found)
        return ChunkedScores(logp, given.mask, entropies, squares)

    def _dense(self, given: Responses) -> DenseScores:
        """The same from all logits at once, which is faster where they are few, and lets tokens be left out."""
        with self.precision():
            logits = self.output_head()(self.hidden(given.prompts, given.responses)).float()
        if given.kept is not None:
            logits = cut(logits, unpack(given.kept, logits.shape[2]))
        distribution = logits.log_softmax(2)
        logp = distribution.gather(2, given.responses.unsqueeze(2)).squeeze(2)
        return DenseScores(torch.where(given.mask, logp, 0.0), distribution.permute(2, 0, 1), given.mask)

    def sample(self, draw: Draw) -> Rollout:
        """See `Policy.sample`."""
        draws = self._draws(draw)
        with self.precision():
            return (self.sampling.loop or refill)(self, draws)

    def decoding(self, prompts: Tensor, rows: int, length: int) -> SlotDecoding:  # pyright: ignore[reportIncompatibleMethodOverride]
        """See `Policy.decoding`."""
        with self.precision():
            return SlotDecoding(self, prompts, rows, length)

    def extend(self, rollout: Rollout, decoding: Decoding, draw: Draw, positions: range) -> None:
        """See `Policy.extend`."""
        assert isinstance(decoding, SlotDecoding)
        draws = self._draws(draw)
        with self.precision():
            decoding.extend(rollout, draws, positions)

    def _draws(self, draw: Draw) -> TokenDraws:
        asked = replace(draw, truncation=draw.truncation or self.sampling.truncation)
        return TokenDraws(asked, self.device, len(self.chunked_head.vocabulary.weight))


def _longest(mask: Tensor) -> int:
    """Length up to the last position that counts in any row, at least 1."""
    places = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    return max(1, int((mask * places).amax())) if mask.numel() else 1
