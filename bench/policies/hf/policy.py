"""A Hugging Face causal language model as a policy: scoring through a chunked head, and sampling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from vcpo_bench.bench.policies.base import Decoding, Policy
from vcpo_bench.bench.policies.hf.decoding import SlotDecoding
from vcpo_bench.bench.policies.hf.network import CausalNetwork
from vcpo_bench.bench.policies.hf.sampling import SamplingOptions, TokenDraws, refill
from vcpo_bench.bench.policies.scores import ChunkedScores, DenseScores
from vcpo_bench.bench.policies.truncation import Truncation, cut, unpack
from vcpo_bench.bench.score_norms import ChunkedHead
from vcpo_bench.bench.trajectories import Rollout


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

    def score(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, prompts: Tensor, responses: Tensor, mask: Tensor, kept: Tensor | None = None
    ) -> ChunkedScores | DenseScores:
        """See `Policy.score`; memory grows with tokens, and with tokens times vocabulary only where sets are given."""
        if kept is not None:
            return self._dense(*self._here(prompts, responses, mask, kept))
        return self._chunked(*self._here(prompts, responses, mask))

    def score_rows(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, prompts: Tensor, responses: Tensor, mask: Tensor, kept: Tensor | None = None
    ) -> ChunkedScores | DenseScores:
        """See `Policy.score_rows`; computes all logits at once where they fit into one chunk, or sets are given."""
        if kept is not None:
            return self._dense(*self._here(prompts, responses, mask, kept))
        prompts, responses, mask = self._here(prompts, responses, mask)
        vocabulary = self.chunked_head.vocabulary
        if 4 * responses.numel() * len(vocabulary.weight) <= vocabulary.chunk_bytes:
            return self._dense(prompts, responses, mask)
        return self._chunked(prompts, responses, mask)

    def _chunked(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> ChunkedScores:
        """Scores from a head computed in vocabulary chunks; positions after the longest response are left out."""
        length = _longest(mask)
        responses, kept = responses[:, :length], mask[:, :length]
        found = self.chunked_head.statistics(self.hidden(prompts, responses), responses, kept)
        logp, entropies, squares = (F.pad(values, (0, mask.shape[1] - length)) for values in found)
        return ChunkedScores(logp, mask, entropies, squares)

    def _dense(self, prompts: Tensor, responses: Tensor, mask: Tensor, kept: Tensor | None = None) -> DenseScores:
        """The same from all logits at once, which is faster where they are few, and lets tokens be left out."""
        with self.precision():
            logits = self.output_head()(self.hidden(prompts, responses)).float()
        if kept is not None:
            logits = cut(logits, unpack(kept, logits.shape[2]))
        distribution = logits.log_softmax(2)
        logp = distribution.gather(2, responses.unsqueeze(2)).squeeze(2)
        return DenseScores(torch.where(mask, logp, 0.0), distribution.permute(2, 0, 1), mask)

    def sample(
        self,
        prompts: Tensor,
        uniforms: Tensor,
        eos: int | None = None,
        greedy: Tensor | None = None,
        truncation: Truncation | None = None,
    ) -> Rollout:
        """See `Policy.sample`."""
        draws = self._draws(uniforms, eos, greedy, truncation)
        with self.precision():
            return (self.sampling.loop or refill)(self, prompts, draws)

    def decoding(self, prompts: Tensor, rows: int, length: int) -> SlotDecoding:  # pyright: ignore[reportIncompatibleMethodOverride]
        """See `Policy.decoding`."""
        with self.precision():
            return SlotDecoding(self, prompts, rows, length)

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
        assert isinstance(decoding, SlotDecoding)
        draws = self._draws(uniforms, eos, greedy, truncation)
        with self.precision():
            decoding.extend(rollout, prompts.shape[1], draws, positions)

    def _draws(
        self, uniforms: Tensor, eos: int | None, greedy: Tensor | None, truncation: Truncation | None
    ) -> TokenDraws:
        vocabulary = len(self.chunked_head.vocabulary.weight)
        return TokenDraws(uniforms, eos, greedy, truncation or self.sampling.truncation, self.device, vocabulary)

    def _here(self, *tensors: Tensor) -> Iterator[Tensor]:
        device = self.device
        return (tensor.to(device) for tensor in tensors)


def _longest(mask: Tensor) -> int:
    """Length up to the last position that counts in any row, at least 1."""
    return max(1, int(mask.any(0).nonzero().max().item()) + 1) if bool(mask.any()) else 1
