"""The built-in mixture of experts: the network with the interface of a policy on top."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vcpo_bench.bench.policies.base import Decoding
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.moe.decoding import MoeDecoder
from vcpo_bench.bench.policies.moe.experts import expert_logp, watched
from vcpo_bench.bench.policies.moe.network import MoeTransformer
from vcpo_bench.bench.policies.routed import UNROUTED, RoutedPolicy, RoutedScores, needed
from vcpo_bench.bench.policies.tiny.sampling import extend
from vcpo_bench.bench.policies.tiny.scoring import dense_scores
from vcpo_bench.bench.trajectories import Responses, Rollout


class MoePolicy(MoeTransformer, RoutedPolicy):
    """The mixture of experts as a policy; made like the network, from a `MoeConfig` and the seed of its weights."""

    def score(self, given: Responses) -> RoutedScores:  # pyright: ignore[reportIncompatibleMethodOverride]
        """See `Policy.score`; each prompt is computed once for its group, unless its replayed routes differ."""
        return self._score(given, rows=False)

    def score_rows(self, given: Responses) -> RoutedScores:  # pyright: ignore[reportIncompatibleMethodOverride]
        """See `Policy.score_rows`."""
        return self._score(given, rows=True)

    def _score(self, given: Responses, rows: bool) -> RoutedScores:
        given = given.to(self.device)
        hidden, used = self._hidden(given, rows)
        found = dense_scores(self.head, hidden, given)
        return RoutedScores(found.logp, found.distribution, found.mask, self._recorded(used, found.mask))

    def _hidden(self, given: Responses, rows: bool) -> tuple[Tensor, Tensor]:
        """What predicts the responses, [B, T, width], and the routes on the way, int8 [B, Lp + T - 1, layers, k]."""
        prompts, inputs = given.prompts, given.responses[:, :-1]
        routes = None if given.routes is None else given.routes[:, :-1]
        group, before = len(inputs) // len(prompts), prompts.shape[1] - 1
        if not rows and group > 1 and (routes is None or _alike(routes[:, :before], group)):
            last = prompts[:, -1:].repeat_interleave(group, 0)
            return self.hidden_after(prompts[:, :-1], torch.cat([last, inputs], 1), routes)
        tokens = torch.cat([prompts.repeat_interleave(group, 0), inputs], 1)
        return self.hidden(tokens, before, routes)

    def _recorded(self, used: Tensor, mask: Tensor) -> Tensor:
        """Routes of all positions but the last as they are recorded, in main memory."""
        found = self.empty_routes(len(used), used.shape[1] + 1)
        found[:, :-1] = used
        prompt = found.shape[1] - mask.shape[1]
        return found.masked_fill_(~needed(mask.cpu(), prompt)[..., None, None], UNROUTED)

    @torch.no_grad()
    def own_routes(self, given: Responses) -> Tensor:
        """See `RoutedPolicy.own_routes`."""
        _, used = self._hidden(given.to(self.device)._replace(routes=None), rows=False)
        return self._recorded(used, given.mask)

    @torch.no_grad()
    def router_logp(self, given: Responses, experts: Tensor) -> Tensor:
        """See `RoutedPolicy.router_logp`."""
        T = given.mask.shape[1]
        with watched([block.experts for block in self.layers()]) as logits:
            self._hidden(given.to(self.device), rows=False)
        wanted = experts[:, -T - 1 : -1].to(self.device).long().clamp_min(0)
        found = [expert_logp(each[:, -T:], wanted[:, :, depth]) for depth, each in enumerate(logits)]
        return torch.stack(found, 2).cpu().masked_fill_(~given.mask.cpu()[..., None, None], 0.0)

    @property
    def route_shape(self) -> tuple[int, int]:
        """See `RoutedPolicy.route_shape`."""
        return self.config.layers, self.config.active

    def decoding(self, prompts: Tensor, rows: int, length: int) -> MoeDecoder:
        """See `Policy.decoding`."""
        with torch.inference_mode():
            return MoeDecoder(self, prompts, rows, length, self.router_noise, self.records_routers)

    def extend(self, rollout: Rollout, decoding: Decoding, draw: Draw, positions: range) -> None:
        """See `Policy.extend`; a position keeps its first route, also where a later decoder computes it again."""
        assert isinstance(decoding, MoeDecoder)
        extend(rollout, decoding, draw, positions)
        if rollout.routes is not None:
            fresh = (rollout.routes == UNROUTED) & needed(rollout.mask, draw.prompts.shape[1])[..., None, None]
            rollout.routes.copy_(torch.where(fresh, decoding.routes.cpu(), rollout.routes))
            if rollout.router_logp is not None:
                drawing = slice(draw.prompts.shape[1] - 1, -1)
                found = decoding.router_logp[:, drawing].cpu()
                rollout.router_logp.copy_(torch.where(fresh[:, drawing], found, rollout.router_logp))

    def output_head(self) -> nn.Linear:
        """See `Policy.output_head`."""
        return self.head


def _alike(routes: Tensor, group: int) -> bool:
    """Whether the rows of each group have the same routes: [P * group, L, layers, k]."""
    each = routes.reshape(-1, group, *routes.shape[1:])
    return bool((each == each[:, :1]).all())
