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

    @classmethod
    def empty(cls, rows: int, length: int, eos: int | None) -> "Rollout":
        """Nothing drawn yet. Made outside inference mode, so that the learner may save it for its backward pass."""
        zeros = torch.zeros(2, rows, length)
        return cls(torch.full((rows, length), eos or 0), zeros[0], torch.ones(rows, length).bool(), zeros[1])


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
    """Draw the tokens at consecutive `places` of every row, in place; the decoder has seen all before the last one.

    Prompts, uniforms, eos and greedy are those of `sample`.
    """
    if places.start:
        token = rollout.responses[:, places.start - 1]
    else:
        token = prompts[:, -1].repeat_interleave(len(uniforms) // prompts.shape[0])
    draws = uniforms.t().contiguous()
    with torch.inference_mode():
        for t in places:
            logp = decoder.step(token).log_softmax(0)
            p = logp.exp()
            token = _inverse_cdf(p, draws[t])
            if greedy is not None:
                token = torch.where(greedy, logp.argmax(0), token)
            rollout.logp[:, t] = logp.gather(0, token.unsqueeze(0)).squeeze(0)
            rollout.entropy[:, t] = -(p * logp).sum(0)
            rollout.responses[:, t] = token
            if eos is not None and _end(rollout, t, eos):
                break


def _end(rollout: Rollout, t: int, eos: int) -> bool:
    """Turn step t of the responses that had ended into padding; whether every response has ended now."""
    alive = rollout.mask[:, t]
    rollout.responses[:, t].masked_fill_(~alive, eos)
    rollout.logp[:, t] *= alive
    rollout.entropy[:, t] *= alive
    rollout.mask[:, t + 1 :] = (alive & (rollout.responses[:, t] != eos)).unsqueeze(1)
    return not rollout.mask[:, -1].any()


def _inverse_cdf(p: Tensor, uniform: Tensor) -> Tensor:
    """The first token of each column of [V, B] whose cumulative probability exceeds uniform * total -> int64 [B]."""
    cdf = p.double().cumsum(0)
    return (cdf[:-1] <= uniform * cdf[-1]).sum(0)
