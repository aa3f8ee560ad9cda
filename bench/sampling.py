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
    """

    responses: Tensor
    logp: Tensor
    mask: Tensor


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
    # made outside inference mode, so that the learner may save them for its backward pass
    rollout = Rollout(torch.full((B, T), eos or 0), torch.zeros(B, T), torch.zeros(B, T, dtype=torch.bool))
    with torch.inference_mode():
        decoder = Decoder(policy, prompts, B, T)
        token = prompts[:, -1].repeat_interleave(B // prompts.shape[0])
        alive = torch.ones(B, dtype=torch.bool)
        draws = uniforms.t().contiguous()
        for t in range(T):
            logp = decoder.step(token).log_softmax(0)
            token = _inverse_cdf(logp, draws[t])
            if greedy is not None:
                token = torch.where(greedy, logp.argmax(0), token)
            chosen = logp.gather(0, token.unsqueeze(0)).squeeze(0)
            if eos is not None:
                token, chosen = token.where(alive, eos), chosen.where(alive, 0.0)
            rollout.responses[:, t], rollout.logp[:, t], rollout.mask[:, t] = token, chosen, alive
            if eos is not None:
                alive = alive & (token != eos)
                if not alive.any():
                    break
    return rollout


def _inverse_cdf(logp: Tensor, uniform: Tensor) -> Tensor:
    """The first token of each column of [V, B] whose cumulative probability exceeds uniform * total -> int64 [B]."""
    cdf = logp.double().exp_().cumsum(0)
    return (cdf[:-1] <= uniform * cdf[-1]).sum(0)
