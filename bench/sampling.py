"""Sampling responses with a preallocated key-value cache, from uniforms given by the caller."""

from dataclasses import dataclass

import torch
from torch import Tensor

from vcpo_bench.bench.decoding import Decoder
from vcpo_bench.bench.policy import Policy


@dataclass(frozen=True)
class Rollout:
    """Sampled responses.

    Attributes:
        responses: int64 [B, T]; after the end of a response, padding with the end token.
        logp: float32 [B, T] log-probability of each token under the policy that drew it, 0 at padding.
        mask: bool [B, T], True up to and including the end token.
        entropy: float32 [B, T] entropy in nats of the distribution each token was drawn from, 0 at padding.
    """

    responses: Tensor
    logp: Tensor
    mask: Tensor
    entropy: Tensor


def sample(
    policy: Policy, prompts: Tensor, uniforms: Tensor, eos: int | None = None, greedy: Tensor | None = None
) -> Rollout:
    """Draw one response per row of `uniforms`, at temperature 1 and without truncation.

    Args:
        policy: what to sample from.
        prompts: int64 [P, Lp], P dividing B: the responses of one prompt are consecutive, and it is computed once.
        uniforms: float64 [B, T] in [0, 1): token t of row i is the inverse of its cumulative distribution at [i, t].
        eos: token that ends a response, or None if all run to T.
        greedy: bool [B], True for rows that take the most likely token instead (ties: the smallest token).

    Returns:
        Responses of length T, rows in the order of `uniforms`.
    """
    B, T = uniforms.shape
    with torch.inference_mode():
        decoder = Decoder(policy, prompts, B, T)
        tokens, distributions = _decode(decoder, uniforms.t().contiguous(), eos, greedy)
        logp = distributions.gather(1, tokens.unsqueeze(1)).squeeze(1)
        entropy = -(distributions.exp() * distributions).sum(1)
        is_end = tokens == (-1 if eos is None else eos)
        mask = is_end.cumsum(0) == is_end  # no end before this token
        columns = tokens.where(mask, eos or 0), logp.where(mask, 0.0), mask, entropy.where(mask, 0.0)
    # copied outside inference mode, so that the learner may save them for its backward pass
    return Rollout(*(column.t().clone(memory_format=torch.contiguous_format) for column in columns))


def _decode(decoder: Decoder, draws: Tensor, eos: int | None, greedy: Tensor | None) -> tuple[Tensor, Tensor]:
    """Draw tokens [T, B] from draws [T, B]; with them the log-probabilities [T, V, B] they were drawn from.

    What stands after the end of a response is not meaningful. Rows that have ended are dropped once they are a quarter.
    """
    T, B = draws.shape
    token = torch.empty(0)
    tokens, distributions = torch.zeros(T, B, dtype=torch.int64), torch.zeros(T, *decoder.first.shape)
    rows: Tensor | slice = slice(None)  # those still decoded
    alive = torch.ones(B, dtype=torch.bool)
    for t in range(T):
        logp = (decoder.step(token) if t else decoder.first).log_softmax(0)
        token = _inverse_cdf(logp.exp(), draws[t, rows])
        if greedy is not None:
            token = torch.where(greedy[rows], logp.argmax(0), token)
        tokens[t, rows], distributions[t, :, rows] = token, logp
        if eos is None:
            continue
        alive = alive & (token != eos)
        left = int(alive.sum())
        if left == 0:
            break
        if left < 0.75 * len(alive):
            kept = alive.nonzero().squeeze(1)
            decoder.keep(kept)
            rows, token, alive = torch.arange(B)[rows][kept], token[kept], alive[kept]
    return tokens, distributions


def _inverse_cdf(p: Tensor, uniform: Tensor) -> Tensor:
    """The first token of each column of [V, B] whose cumulative probability exceeds uniform * total -> int64 [B]."""
    cdf = p.double().cumsum(0)
    return (cdf[:-1] <= uniform * cdf[-1]).sum(0)
