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

    @classmethod
    def empty(cls, rows: int, length: int, eos: int | None) -> "Rollout":
        """Nothing drawn yet. Made outside inference mode, so that the learner may save it for its backward pass."""
        mask = torch.zeros(rows, length, dtype=torch.bool)
        return cls(torch.full((rows, length), eos or 0), torch.zeros(rows, length), mask)


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
    """Draw the tokens at ``places`` of every row, in place; the decoder has seen all before the last one.

    Args:
        rollout: drawn up to the first of the places.
        decoder: at the position of the last token drawn.
        prompts, uniforms, eos, greedy: as for `sample`.
        places: consecutive token positions.
    """
    B = len(uniforms)
    token = prompts[:, -1].repeat_interleave(B // prompts.shape[0])
    alive = torch.ones(B, dtype=torch.bool)
    if places.start:
        token = rollout.responses[:, places.start - 1]
        alive = rollout.mask[:, places.start - 1] & (token != eos if eos is not None else True)
    draws = uniforms.t().contiguous()
    with torch.inference_mode():
        for t in places:
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


def _inverse_cdf(logp: Tensor, uniform: Tensor) -> Tensor:
    """The first token of each column of [V, B] whose cumulative probability exceeds uniform * total -> int64 [B]."""
    cdf = logp.double().exp_().cumsum(0)
    return (cdf[:-1] <= uniform * cdf[-1]).sum(0)
