"""Sampling responses with a preallocated key-value cache, from uniforms given by the caller."""

from __future__ import annotations

import torch
from torch import Tensor

from vcpo_bench.bench.policies.draw import Draw, looks
from vcpo_bench.bench.policies.tiny.decoding import Decoder
from vcpo_bench.bench.policies.truncation import FLOOR, pack
from vcpo_bench.bench.trajectories import Rollout


def extend(rollout: Rollout, decoder: Decoder, draw: Draw, positions: range) -> None:
    """Draw the tokens at consecutive positions of every row, in place; see `Policy.extend`.

    Greedy ties go to the smallest token. A decoder must not be used again after the last position of its responses.
    """
    part = slice(positions.start, positions.stop)
    alive = rollout.mask[:, positions.start].to(decoder.first.device, copy=True)
    with torch.inference_mode():
        new = decoder.position == draw.prompts.shape[1] + positions.start
        token = None if new else rollout.responses[:, positions.start - 1].to(decoder.first.device)
        tokens, distributions = _decode(decoder, token, alive, draw, part)
        logp = distributions.gather(1, tokens.unsqueeze(1)).squeeze(1)
        entropy = -(distributions.exp() * distributions).sum(1)
        is_end = tokens == end_token(draw.eos)
        mask = (is_end.cumsum(0) == is_end) & alive  # no end before this token
        rollout.responses[:, part] = tokens.where(mask, draw.eos or 0).t()
        rollout.logp[:, part] = logp.where(mask, 0.0).t()
        rollout.entropy[:, part] = entropy.where(mask, 0.0).t()
        rollout.mask[:, part] = mask.t()
        if rollout.kept is not None:
            rollout.kept[:, part] = pack((distributions > FLOOR / 2).permute(2, 0, 1)) * mask.t().unsqueeze(2)
        if rollout.sampler_logp is not None:
            rollout.sampler_logp[:, part] = distributions.permute(2, 0, 1).where(mask.t().unsqueeze(2), 0.0)
        rollout.mask[:, positions.stop :] = (mask[-1] & ~is_end[-1]).unsqueeze(1)


def _decode(decoder: Decoder, token: Tensor | None, alive: Tensor, draw: Draw, part: slice) -> tuple[Tensor, Tensor]:
    """Draw the n tokens of `part` for B rows, [n, B]; with them the log-probabilities [n, V, B] they were drawn from.

    `token` is the last one drawn, None for a new decoder. Values after the end of a response mean nothing.
    Ended rows are dropped once they are a quarter of all, unless a later call continues with the decoder.
    """
    device, eos = alive.device, end_token(draw.eos)
    draws = draw.uniforms[:, part].t().contiguous().to(device)
    greedy = None if draw.greedy is None else draw.greedy.to(device)
    n, B = draws.shape
    tokens = torch.zeros(n, B, dtype=torch.int64, device=device)
    distributions = torch.zeros(n, *decoder.first.shape, device=device)
    rows: Tensor | slice = slice(None)  # those still decoded
    for t in range(n):
        if looks(t, device):
            left = int(alive.sum())
            if left == 0:
                break
            if token is not None and left < 0.75 * len(alive) and decoder.room == n - t:
                kept = alive.nonzero().squeeze(1)
                decoder.keep(kept)
                rows, token, alive = torch.arange(B, device=device)[rows][kept], token[kept], alive[kept]
        logits = decoder.first if token is None else decoder.step(token)
        logp = (logits if draw.truncation is None else draw.truncation.apply(logits, 0)).log_softmax(0)
        token = _inverse_cdf(logp.exp(), draws[t, rows])
        if greedy is not None:
            token = torch.where(greedy[rows], logp.argmax(0), token)
        tokens[t, rows], distributions[t, :, rows] = token, logp
        alive = alive & (token != eos)
    return tokens, distributions


def end_token(eos: int | None) -> int:
    """The end token, or one that is never drawn."""
    return -1 if eos is None else eos


def _inverse_cdf(p: Tensor, uniform: Tensor) -> Tensor:
    """The first token of each column of [V, B] whose cumulative probability exceeds uniform * total -> int64 [B]."""
    cdf = p.double().cumsum(0)
    return (cdf[:-1] <= uniform * cdf[-1]).sum(0)
