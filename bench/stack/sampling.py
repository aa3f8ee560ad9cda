"""Sampling the responses of E cells at once, from uniforms given by the caller."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vcpo_bench.bench.policies.draw import Draw, looks
from vcpo_bench.bench.policies.tiny.sampling import end_token
from vcpo_bench.bench.stack.decoding import StackedDecoder
from vcpo_bench.bench.stack.network import StackedNetwork
from vcpo_bench.bench.trajectories import Rollout


def sample(network: StackedNetwork, asked: Sequence[Draw]) -> list[Rollout]:
    """Draw whole responses in every cell; see `Policy.sample`.

    Args:
        network: The policies.
        asked: What each cell is asked for: as many prompts and responses, with the same end token and greedy rows.

    Returns:
        The rollout of each cell, in main memory.
    """
    prompts, uniforms = (torch.stack([getattr(each, name) for each in asked]) for name in ("prompts", "uniforms"))
    E, B, T = uniforms.shape
    eos, greedy = asked[0].eos, asked[0].greedy
    drawn = Rollout.empty(E * B, T, eos)
    with torch.inference_mode():
        draws = uniforms.permute(2, 0, 1).contiguous().to(network.device)
        greedy = None if greedy is None else greedy.to(network.device)
        tokens, distributions = _decode(StackedDecoder(network, prompts, B, T), draws, eos, greedy)
        logp = distributions.gather(2, tokens.unsqueeze(2)).squeeze(2)
        entropy = -(distributions.exp() * distributions).sum(2)
        is_end = tokens == end_token(eos)
        mask = is_end.cumsum(0) == is_end
        drawn.responses.copy_(_rows(tokens.where(mask, eos or 0)))
        drawn.logp.copy_(_rows(logp.where(mask, 0.0)))
        drawn.entropy.copy_(_rows(entropy.where(mask, 0.0)))
        drawn.mask.copy_(_rows(mask))
    return _split(drawn, E)


def _decode(decoder: StackedDecoder, draws: Tensor, eos: int | None, greedy: Tensor | None) -> tuple[Tensor, Tensor]:
    """Tokens `[T, E, B]` drawn from uniforms `[T, E, B]`, and the log-probabilities `[T, E, V, B]` they came from.

    Rows are decoded on after their end; what they hold there means nothing.
    """
    tokens = torch.zeros(draws.shape, dtype=torch.int64, device=draws.device)
    distributions = torch.zeros(len(draws), *decoder.first.shape, device=draws.device)
    alive = torch.ones(draws.shape[1:], dtype=torch.bool, device=draws.device)
    for t, draw in enumerate(draws):
        logp = (decoder.step(tokens[t - 1]) if t else decoder.first).log_softmax(1)
        token = _inverse_cdf(logp.exp(), draw)
        tokens[t] = token if greedy is None else torch.where(greedy, logp.argmax(1), token)
        distributions[t] = logp
        if eos is not None:
            alive &= tokens[t] != eos
            if looks(t + 1, draws.device) and not alive.any():
                break
    return tokens, distributions


def _inverse_cdf(p: Tensor, uniform: Tensor) -> Tensor:
    """The first token of each column of `[E, V, B]` whose cumulative probability exceeds uniform * total."""
    cdf = p.double().cumsum(1)
    return (cdf[:, :-1] <= (uniform * cdf[:, -1]).unsqueeze(1)).sum(1)


def _rows(steps: Tensor) -> Tensor:
    """`[T, E, B]` as `[E * B, T]`."""
    return steps.permute(1, 2, 0).flatten(0, 1)


def _split(drawn: Rollout, cells: int) -> list[Rollout]:
    tensors = (drawn.responses, drawn.logp, drawn.mask, drawn.entropy)
    columns = [tensor.view(cells, -1, tensor.shape[-1]).unbind() for tensor in tensors]
    return [Rollout(*own) for own in zip(*columns, strict=True)]
