"""A Hugging Face causal language model as a policy: `bench.policies.base.Model` on top of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vcpo_bench.bench.policies.base import Decoding, Model
from vcpo_bench.bench.policies.hf.cache_slots import Slots
from vcpo_bench.bench.policies.hf.decoding import SlotDecoding
from vcpo_bench.bench.policies.hf.generate import generate
from vcpo_bench.bench.policies.hf.sampling import Draws, sample
from vcpo_bench.bench.policies.tiny.sampling import Rollout
from vcpo_bench.bench.policies.tiny.scoring import DenseScores
from vcpo_bench.bench.samplers.base import SamplerSpec
from vcpo_bench.bench.score_norms import ChunkedHead
from vcpo_bench.errors import UsageError


@dataclass(frozen=True)
class TokenScores:
    """`model.Scores` of chosen tokens, from a pass that never held all logits.

    Attributes:
        logp: [B, T] log-probabilities, differentiable.
        mask: bool [B, T].
        entropies: [B, T] entropies in nats, differentiable.
        sum_pi_sq: [B, T] sums of squared probabilities.
    """

    logp: Tensor
    mask: Tensor
    entropies: Tensor
    sum_pi_sq: Tensor

    @property
    def entropy(self) -> Tensor:
        """See `model.Scores`."""
        return self.entropies.detach()

    def differentiable_entropy(self) -> Tensor:
        """See `model.Scores`."""
        return self.entropies


class CausalPolicy(Model):
    """A causal language model. Prompts are padded on the left with `pad`; a prompt must not begin with that token.

    Trained parameters stay float32, so that small updates are not rounded away; with `dtype` bfloat16 the products are
    computed in it.

    Args:
        network: The model; its parameters that require gradients are trained.
        pad: Padding token.
        dtype: What it computes in.
        sampler: How it is sampled.
        recompute: Compute activations again in the backward pass instead of keeping them.

    Raises:
        UsageError: Its logits are not those of its head on its last hidden state, or it cannot recompute activations.
    """

    def __init__(
        self,
        network: Any,
        pad: int,
        dtype: torch.dtype = torch.float32,
        sampler: SamplerSpec = SamplerSpec(),  # noqa: B008 - immutable
        recompute: bool = False,
    ) -> None:
        super().__init__()
        self.network: Any = network.eval()  # dropout would make sampler and learner different policies
        self.pad, self.dtype, self.sampler = pad, dtype, sampler
        self._recomputed = _checkpointed(network) if recompute else []
        self.chunked_head = ChunkedHead(self.output_head(), dtype)
        self._check_head()

    def output_head(self) -> nn.Module:
        """See `Model.output_head`."""
        head: nn.Module = self.network.get_output_embeddings()
        return head

    def real(self, prompts: Tensor) -> Tensor:
        """Bool, the shape of prompts [P, Lp]: True from the first token on that is not padding."""
        return (prompts != self.pad).cumsum(1) > 0

    def score(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> TokenScores:
        """See `Model.score`; memory grows with tokens, not with tokens times vocabulary."""
        return self._chunked(*self._here(prompts, responses, mask))

    def score_rows(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> TokenScores | DenseScores:
        """See `Model.score_rows`; logits exist all at once only where they are no more than `chunked_head` holds."""
        prompts, responses, mask = self._here(prompts, responses, mask)
        vocabulary = self.chunked_head.vocabulary
        if 4 * responses.numel() * len(vocabulary.weight) <= vocabulary.chunk_bytes:
            return self._dense(prompts, responses, mask)
        return self._chunked(prompts, responses, mask)

    def _chunked(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> TokenScores:
        """Scores up to the end of the longest response; the vocabulary is gone through in blocks."""
        length = _longest(mask)
        responses, kept = responses[:, :length], mask[:, :length]
        found = self.chunked_head.statistics(self._hidden(prompts, responses), responses, kept)
        logp, entropies, squares = (F.pad(values, (0, mask.shape[1] - length)) for values in found)
        return TokenScores(logp, mask, entropies, squares)

    def _dense(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> DenseScores:
        """The same from all logits, which is faster where they are few."""
        with self._precision():
            logits = self.output_head()(self._hidden(prompts, responses))
        distribution = logits.float().log_softmax(2)
        logp = distribution.gather(2, responses.unsqueeze(2)).squeeze(2)
        return DenseScores(torch.where(mask, logp, 0.0), distribution.permute(2, 0, 1), mask)

    def sample(
        self, prompts: Tensor, uniforms: Tensor, eos: int | None = None, greedy: Tensor | None = None
    ) -> Rollout:
        """See `Model.sample`."""
        draws = Draws(uniforms, eos, greedy, self.sampler, self.device)
        with self._precision():
            if self.sampler.name == "generate":
                return generate(self, prompts, draws)
            return sample(self, prompts, draws, self.sampler.slots)

    def decoding(self, prompts: Tensor, rows: int, length: int) -> SlotDecoding:
        """See `Model.decoding`."""
        with self._precision():
            return SlotDecoding(self, prompts, rows, length)

    def extend(
        self, rollout: Rollout, decoding: Decoding, prompts: Tensor, uniforms: Tensor, places: range, eos: int | None
    ) -> None:
        """See `Model.extend`."""
        assert isinstance(decoding, SlotDecoding)
        draws = Draws(uniforms, eos, None, self.sampler, self.device)
        with self._precision():
            decoding.extend(rollout, prompts.shape[1], draws, places)

    def prefill(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Any]:
        """Hidden states [n, L, width] and the cache of sequences padded on the right, int64 [n, L] and [n]."""
        places = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        real = (places < lengths.unsqueeze(1)).long()
        out = self.network.base_model(input_ids=tokens, attention_mask=real, position_ids=places, use_cache=True)
        return out.last_hidden_state, out.past_key_values

    def step(self, tokens: Tensor, positions: Tensor, visible: Tensor, cache: Slots) -> Tensor:
        """Hidden states [S, width] of one more token [S] each, at positions [S], seeing columns [S, K] of the cache."""
        mask = visible[:, None, None]
        if self.network.config._attn_implementation != "sdpa":  # the others add the mask to the scores
            mask = torch.zeros(mask.shape, dtype=self.dtype, device=mask.device).masked_fill(~mask, -torch.inf)
        out = self.network.base_model(
            input_ids=tokens.unsqueeze(1),
            attention_mask=mask,
            position_ids=positions.unsqueeze(1),
            past_key_values=cache,
            use_cache=True,
        )
        hidden: Tensor = out.last_hidden_state[:, 0]
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Float32 logits [n, V] of hidden states [n, width]."""
        with self._precision():
            logits: Tensor = self.output_head()(hidden)
        return logits.float()

    def _hidden(self, prompts: Tensor, responses: Tensor) -> Tensor:
        """What the head reads for each response token, [B, T, width]."""
        prompts = prompts.repeat_interleave(len(responses) // len(prompts), 0)
        real = self.real(prompts)
        shortest_padding = int((~real).sum(1).min())
        prompts, real = prompts[:, shortest_padding:], real[:, shortest_padding:]
        tokens = torch.cat([prompts, responses[:, :-1]], 1)
        attended = torch.cat([real, real.new_ones(responses[:, :-1].shape)], 1).long()
        positions = (attended.cumsum(1) - 1).clamp(min=0)
        with self._precision(), self._recomputing():
            out = self.network.base_model(
                input_ids=tokens, attention_mask=attended, position_ids=positions, use_cache=False
            )
        hidden: Tensor = out.last_hidden_state[:, prompts.shape[1] - 1 :]
        return hidden

    def _here(self, *tensors: Tensor) -> Iterator[Tensor]:
        device = self.device
        return (tensor.to(device) for tensor in tensors)

    @contextmanager
    def _precision(self) -> Iterator[None]:
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            yield

    @contextmanager
    def _recomputing(self) -> Iterator[None]:
        """Have layers forget their activations inside the block only: outside, they would forget their caches too."""
        for layer in self._recomputed:
            layer.training = True  # of the layer alone, not of what is in it: dropout stays off
        try:
            yield
        finally:
            for layer in self._recomputed:
                layer.training = False

    @torch.no_grad()
    def _check_head(self) -> None:
        """Refuse models that scale or cap their logits after the head: their log-probabilities would be wrong."""
        tokens = torch.tensor([[1, 0, 1]], device=self.device) % self.network.config.vocab_size
        with self._precision():
            theirs = self.network(input_ids=tokens, use_cache=False).logits.float()
            ours = self.logits(self.network.base_model(input_ids=tokens, use_cache=False).last_hidden_state)
        if not torch.allclose(theirs, ours, rtol=1e-2, atol=1e-3):
            kind = type(self.network).__name__
            raise UsageError(f"{kind} changes its logits after the output head (by scaling or capping): not supported")


def _checkpointed(network: Any) -> list[nn.Module]:
    """Turn activation checkpointing on; the modules that do it."""
    newer = getattr(network, "activation_checkpointing_enable", None)  # the other name goes away in version 6
    try:
        (newer or network.gradient_checkpointing_enable)({"use_reentrant": False})
    except ValueError as error:
        raise UsageError(f"--checkpointing: {type(network).__name__} does not support it; leave it out") from error
    return [module for module in network.modules() if getattr(module, "gradient_checkpointing", False)]


def _longest(mask: Tensor) -> int:
    """Places up to the last one that counts in any row, at least 1."""
    return max(1, int(mask.any(0).nonzero().max().item()) + 1) if bool(mask.any()) else 1
