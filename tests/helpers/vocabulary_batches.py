"""Batches whose log-probabilities are those of drawn tokens of whole distributions."""

from collections.abc import Callable

import torch
from torch import Tensor

from vcpo_bench.methods import Batch

Make = Callable[..., Batch]


def drawn(make_batch: Make, shape: tuple[int, ...], seed: int, apart: float, size: int) -> tuple[Batch, Tensor, Tensor]:
    """Tokens drawn from a sampler `apart` from the current policy, over `size` tokens; with logits and token ids."""
    generator = torch.Generator().manual_seed(seed)
    logits, noise = (torch.randn(*shape, size, generator=generator, dtype=torch.float64) for _ in range(2))
    current, sampler = logits.log_softmax(-1), (logits + apart * noise).log_softmax(-1)
    token = torch.multinomial(sampler.exp().reshape(-1, size), 1, generator=generator).reshape(*shape, 1)
    batch = make_batch(
        shape,
        seed=seed,
        logp=current.gather(-1, token).squeeze(-1),
        behavior_logp=sampler.gather(-1, token).squeeze(-1),
        vocabulary_logp=current,
        behavior_vocabulary_logp=sampler,
    )
    return batch, logits.requires_grad_(), token
