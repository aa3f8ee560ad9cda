"""One pass over a prompt for all of its responses: they follow it in one sequence, and none sees another."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_LONGEST = 1024
"""Positions of a shared sequence: attention grows with their square, and would cost more than it saves."""
_WORTH = 1.5
"""Least factor by which positions must become fewer."""


class SharedSequences(NamedTuple):
    """What a network reads.

    Attributes:
        tokens: int64 [P, L], a prompt and then its responses without their last tokens.
        positions: int64 [P, L], the place of each token in its own trajectory.
        visible: bool [P, 1, L, L], which tokens each one attends to.
    """

    tokens: Tensor
    positions: Tensor
    visible: Tensor


def worth_sharing(prompt: int, group: int, length: int) -> bool:
    """Whether a group of responses of some length to a prompt of some length is cheaper in one sequence."""
    together = prompt + group * (length - 1)
    return together <= _LONGEST and group * (prompt + length - 1) >= _WORTH * together


def share(prompts: Tensor, real: Tensor, responses: Tensor) -> SharedSequences:
    """Prompts and their responses as one sequence each.

    Args:
        prompts: int64 [P, Lp], padded on the left.
        real: bool [P, Lp], False at padding.
        responses: int64 [P, G, T].
    """
    P, G, T = responses.shape
    Lp, device = prompts.shape[1], prompts.device
    followed = responses[:, :, :-1]
    tokens = torch.cat([prompts, followed.flatten(1)], 1)
    owner = torch.cat([torch.full((Lp,), -1, device=device), torch.arange(G, device=device).repeat_interleave(T - 1)])
    place = torch.cat([torch.arange(Lp, device=device), Lp + torch.arange(T - 1, device=device).repeat(G)])
    own = (owner.unsqueeze(1) == owner) | (owner == -1)
    causal = own & (place.unsqueeze(1) >= place)
    exists = torch.cat([real, real.new_ones(P, G * (T - 1))], 1)
    itself = torch.eye(len(place), dtype=torch.bool, device=device)  # padding: a row without any entry would be NaN
    positions = (place - (~real).sum(1, keepdim=True)).clamp(min=0)
    return SharedSequences(tokens, positions, ((causal & exists.unsqueeze(1)) | itself).unsqueeze(1))


def apart(hidden: Tensor, prompt: int, group: int) -> Tensor:
    """The states from which each response token is predicted, [P * G, T, width].

    Args:
        hidden: States of the shared sequences, [P, L, width].
        prompt: Lp.
        group: G.
    """
    P, _, width = hidden.shape
    first = hidden[:, prompt - 1 : prompt].repeat_interleave(group, 0)
    return torch.cat([first, hidden[:, prompt:].reshape(P * group, -1, width)], 1)
