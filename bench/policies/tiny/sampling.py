"""Sampling responses with a preallocated key-value cache, from uniforms given by the caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vcpo_bench.bench.policies.tiny.decoding import Decoder

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.tiny.policy import Policy


@dataclass(frozen=True)
class Rollout:
    """Sampled responses.

    Attributes:
        responses: int64 [B, T]; after the end of a response, padding with the end token.
        logp: float32 [B, T] log-probability of each token under the policy that drew it, 0 at padding.
        mask: bool [B, T], True up to and including the end token.
        entropy: float32 [B, T] entropy in nats of the distribution each token was drawn from, 0 at padding.
        version: int64 [B, T] updates seen by the weights that drew each token, from a sampler that keeps count itself.
    """

    responses: Tensor
    logp: Tensor
    mask: Tensor
    entropy: Tensor
    version: Tensor | None = None

    @classmethod
    def empty(cls, rows: int, length: int, eos: int | None) -> Rollout:
        """Nothing drawn yet. Made outside inference mode, so that the learner may save it for its backward pass."""
        zeros = torch.zeros(2, rows, length)
        return cls(torch.full((rows, length), eos or 0), zeros[0], torch.ones(rows, length).bool(), zeros[1])


def sample(
    policy: Policy, prompts: Tensor, uniforms: Tensor, eos: int | None = None, greedy: Tensor | None = None
) -> Rollout:
    """What `Policy.sample` does; each prompt is computed once, and greedy ties go to the smallest token."""
    B, T = uniforms.shape
    rollout = Rollout.empty(B, T, eos)
    with torch.inference_mode():
        decoder = Decoder(policy, prompts, B, T)
    extend(rollout, decoder, prompts, uniforms, range(T), eos, greedy)
    return rollout


def extend(
    rollout: Rollout,
    decoder: Decoder,
    prompts: Tensor,
    uniforms: Tensor,
    places: range,
    eos: int | None = None,
    greedy: Tensor | None = None,
) -> None:
    """Draw the tokens at consecutive `places` of every row, in place. Others are those of `sample`.

    The decoder is either the one that drew the places before, or a new one whose prompts include those responses. It is
    used up when the last place has been drawn.
    """
    part = slice(places.start, places.stop)
    device = decoder.first.device
    alive, greedy = rollout.mask[:, places.start].to(device, copy=True), None if greedy is None else greedy.to(device)
    with torch.inference_mode():
        new = decoder.position == prompts.shape[1] + places.start
        token = None if new else rollout.responses[:, places.start - 1].to(device)
        draws = uniforms[:, part].t().contiguous().to(device)
        tokens, distributions = _decode(decoder, token, draws, alive, eos, greedy)
        logp = distributions.gather(1, tokens.unsqueeze(1)).squeeze(1)
        entropy = -(distributions.exp() * distributions).sum(1)
        is_end = tokens == _end_token(eos)
        mask = (is_end.cumsum(0) == is_end) & alive  # no end before this token
        rollout.responses[:, part] = tokens.where(mask, eos or 0).t()
        rollout.logp[:, part] = logp.where(mask, 0.0).t()
        rollout.entropy[:, part] = entropy.where(mask, 0.0).t()
        rollout.mask[:, part] = mask.t()
        rollout.mask[:, places.stop :] = (mask[-1] & ~is_end[-1]).unsqueeze(1)


def _decode(
    decoder: Decoder, token: Tensor | None, draws: Tensor, alive: Tensor, eos: int | None, greedy: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Draw tokens [n, B] from draws [n, B]; with them the log-probabilities [n, V, B] they were drawn from.

    `token` is the last one drawn, None for a new decoder. What stands after the end of a response is not meaningful.
    Rows that have ended are dropped once they are a quarter, unless the decoder goes on in a later call.
    """
    n, B = draws.shape
    tokens = torch.zeros(n, B, dtype=torch.int64, device=draws.device)
    distributions = torch.zeros(n, *decoder.first.shape, device=draws.device)
    rows: Tensor | slice = slice(None)  # those still decoded
    for t in range(n):
        left = int(alive.sum())
        if left == 0:
            break
        if token is not None and left < 0.75 * len(alive) and decoder.room == n - t:
            kept = alive.nonzero().squeeze(1)
            decoder.keep(kept)
            rows, token, alive = torch.arange(B, device=kept.device)[rows][kept], token[kept], alive[kept]
        logp = (decoder.first if token is None else decoder.step(token)).log_softmax(0)
        token = _inverse_cdf(logp.exp(), draws[t, rows])
        if greedy is not None:
            token = torch.where(greedy[rows], logp.argmax(0), token)
        tokens[t, rows], distributions[t, :, rows] = token, logp
        alive = alive & (token != _end_token(eos))
    return tokens, distributions


def _end_token(eos: int | None) -> int:
    """The end token, or one that is never drawn."""
    return -1 if eos is None else eos


def _inverse_cdf(p: Tensor, uniform: Tensor) -> Tensor:
    """The first token of each column of [V, B] whose cumulative probability exceeds uniform * total -> int64 [B]."""
    cdf = p.double().cumsum(0)
    return (cdf[:-1] <= uniform * cdf[-1]).sum(0)
