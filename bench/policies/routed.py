"""Policies whose layers choose experts: what the rest of the bench asks of their routers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.scores import DenseScores
from vcpo_bench.bench.trajectories import Responses

UNROUTED = -1
"""Stands in recorded routes for a position that no router saw, or whose route was not recorded."""


@dataclass(frozen=True)
class RoutedScores(DenseScores):
    """Scores of a mixture of experts.

    Attributes:
        routes: int8 [B, Lp + T, layers, k] in main memory: the experts that this pass used, replayed or chosen.
    """

    routes: Tensor


class RoutedPolicy(Policy):
    """A mixture of experts.

    It scores with the experts of `Responses.routes` where these are known. Only the choice is replayed: the gates are
    recomputed from the live logits, so that gradients reach the routers.

    Routes are int8 [B, Lp + T, layers, k]: the experts that every position of prompt and response used, in ascending
    order. `UNROUTED` where there is no choice to know: at the last token of a response, which is never an input, behind
    the end, and where an earlier layer was all that was needed.

    Attributes:
        router_noise: How coarsely the routers work while sampling, as `Regime.router_noise` says; scoring is exact.
        records_routers: Whether sampling records the log-probabilities of the experts that it uses, too.
    """

    router_noise: float = 0.0
    records_routers: bool = False

    @abstractmethod
    def own_routes(self, given: Responses) -> Tensor:
        """The routes of given responses under the present weights, without noise, in main memory."""

    @abstractmethod
    def router_logp(self, given: Responses, experts: Tensor) -> Tensor:
        """What the routers say of given experts under the present weights, without noise and gradient.

        Args:
            given: The responses, with the routes that are replayed.
            experts: Routes of these experts, all known where the mask is True.

        Returns:
            float32 [B, T, layers, k] in main memory: log-probability of each expert among all, at the position that
            predicts the token; 0 where the mask is False.
        """

    @property
    @abstractmethod
    def route_shape(self) -> tuple[int, int]:
        """Layers with routers, and experts per token."""

    def empty_routes(self, rows: int, positions: int) -> Tensor:
        """Routes of so many responses and positions, none of them known yet."""
        return torch.full((rows, positions, *self.route_shape), UNROUTED, dtype=torch.int8)

    def recorded(self, draw: Draw) -> dict[str, Tensor]:
        """See `Policy.recorded`; routes too, and what the routers say of them."""
        room = super().recorded(draw) | {"routes": self.empty_routes(draw.rows, draw.prompts.shape[1] + draw.length)}
        if self.records_routers:
            room["router_logp"] = torch.zeros(draw.rows, draw.length, *self.route_shape)
        return room


def needed(mask: Tensor, prompt_length: int) -> Tensor:
    """Which positions some token of the response depends on: mask [B, T] -> bool [B, Lp + T].

    A position is fed to the policy if a later token counts; the last token of a response never is.
    """
    later = mask.flip(1).cumsum(1).flip(1) - mask.long() > 0
    return torch.cat([mask.any(1, keepdim=True).expand(-1, prompt_length), later], 1)
