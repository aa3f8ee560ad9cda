"""The built-in mixture of experts: the network with the interface of a policy on top."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vcpo_bench.bench.policies.base import Decoding
from vcpo_bench.bench.policies.moe.decoding import MoeDecoder
from vcpo_bench.bench.policies.moe.experts import expert_logp, watched
from vcpo_bench.bench.policies.moe.network import MoeTransformer
from vcpo_bench.bench.policies.routed import UNROUTED, RoutedPolicy, RoutedScores, needed
from vcpo_bench.bench.policies.tiny.sampling import extend
from vcpo_bench.bench.policies.truncation import Truncation, cut, unpack
from vcpo_bench.bench.trajectories import Rollout


class MoePolicy(MoeTransformer, RoutedPolicy):
    """The mixture of experts as a policy; made like the network, from a `MoeConfig` and the seed of its weights."""

    def score(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        prompts: Tensor,
        responses: Tensor,
        mask: Tensor,
        kept: Tensor | None = None,
        routes: Tensor | None = None,
    ) -> RoutedScores:
        """See `RoutedPolicy.score`; each prompt is computed once for its group, unless its replayed routes differ."""
        return self._score((prompts, responses, mask), kept, routes, rows=False)

    def score_rows(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        prompts: Tensor,
        responses: Tensor,
        mask: Tensor,
        kept: Tensor | None = None,
        routes: Tensor | None = None,
    ) -> RoutedScores:
        """See `RoutedPolicy.score_rows`."""
        return self._score((prompts, responses, mask), kept, routes, rows=True)

    def _score(
        self, given: tuple[Tensor, Tensor, Tensor], kept: Tensor | None, routes: Tensor | None, rows: bool
    ) -> RoutedScores:
        (prompts, responses, mask), device = (each.to(self.device) for each in given), self.device
        replayed = None if routes is None else routes[:, :-1].to(device)
        hidden, used = self._hidden(prompts, responses, replayed, rows)
        # tokens first: PyTorch's softmax over a short last dimension is not vectorized
        logits = self.head(hidden).permute(2, 0, 1).contiguous()
        if kept is not None:
            logits = cut(logits, unpack(kept.to(device), len(logits)).permute(2, 0, 1))
        distribution = logits.log_softmax(0)
        logp = distribution.gather(0, responses.unsqueeze(0)).squeeze(0)
        return RoutedScores(torch.where(mask, logp, 0.0), distribution, mask, self._recorded(used, mask))

    def _hidden(self, prompts: Tensor, responses: Tensor, routes: Tensor | None, rows: bool) -> tuple[Tensor, Tensor]:
        """What predicts the responses, [B, T, width], and the routes on the way, int8 [B, Lp + T - 1, layers, k]."""
        group, before = len(responses) // len(prompts), prompts.shape[1] - 1
        if not rows and group > 1 and (routes is None or _alike(routes[:, :before], group)):
            last = prompts[:, -1:].repeat_interleave(group, 0)
            return self.hidden_after(prompts[:, :-1], torch.cat([last, responses[:, :-1]], 1), routes)
        tokens = torch.cat([prompts.repeat_interleave(group, 0), responses[:, :-1]], 1)
        return self.hidden(tokens, before, routes)

    def _recorded(self, used: Tensor, mask: Tensor) -> Tensor:
        """Routes of all positions but the last as they are recorded, in main memory."""
        found = self.empty_routes(len(used), used.shape[1] + 1)
        found[:, :-1] = used
        prompt = found.shape[1] - mask.shape[1]
        return found.masked_fill_(~needed(mask.cpu(), prompt)[..., None, None], UNROUTED)

    @torch.no_grad()
    def own_routes(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
        """See `RoutedPolicy.own_routes`."""
        _, used = self._hidden(prompts.to(self.device), responses.to(self.device), None, rows=False)
        return self._recorded(used, mask)

    @torch.no_grad()
    def router_logp(
        self, prompts: Tensor, responses: Tensor, mask: Tensor, experts: Tensor, routes: Tensor | None = None
    ) -> Tensor:
        """See `RoutedPolicy.router_logp`."""
        (prompts, responses), T = (each.to(self.device) for each in (prompts, responses)), mask.shape[1]
        replayed = None if routes is None else routes[:, :-1].to(self.device)
        with watched([block.experts for block in self.layers()]) as logits:
            self._hidden(prompts, responses, replayed, rows=False)
        wanted = experts[:, -T - 1 : -1].to(self.device).long().clamp_min(0)
        found = [expert_logp(each[:, -T:], wanted[:, :, depth]) for depth, each in enumerate(logits)]
        return torch.stack(found, 2).cpu().masked_fill_(~mask.cpu()[..., None, None], 0.0)

    @property
    def route_shape(self) -> tuple[int, int]:
        """See `RoutedPolicy.route_shape`."""
        return self.config.layers, self.config.active

    def sample(
        self,
        prompts: Tensor,
        uniforms: Tensor,
        eos: int | None = None,
        greedy: Tensor | None = None,
        truncation: Truncation | None = None,
    ) -> Rollout:
        """See `Policy.sample`."""
        B, T = uniforms.shape
        routes, router_logp = self.empty_routes(B, prompts.shape[1] + T), self.empty_router_logp(B, T)
        kept = self.kept_bytes(truncation)
        rollout = Rollout.empty(B, T, eos, routes=routes, kept_bytes=kept, router_logp=router_logp)
        self.extend(rollout, self.decoding(prompts, B, T), prompts, uniforms, range(T), eos, greedy, truncation)
        return rollout

    def decoding(self, prompts: Tensor, rows: int, length: int) -> MoeDecoder:
        """See `Policy.decoding`."""
        with torch.inference_mode():
            return MoeDecoder(self, prompts, rows, length, self.router_noise, self.records_routers)

    def extend(
        self,
        rollout: Rollout,
        decoding: Decoding,
        prompts: Tensor,
        uniforms: Tensor,
        positions: range,
        eos: int | None,
        greedy: Tensor | None = None,
        truncation: Truncation | None = None,
    ) -> None:
        """See `Policy.extend`; a position keeps its first route, also where a later decoder computes it again."""
        assert isinstance(decoding, MoeDecoder)
        extend(rollout, decoding, prompts, uniforms, positions, eos, greedy, truncation)
        if rollout.routes is not None:
            fresh = (rollout.routes == UNROUTED) & needed(rollout.mask, prompts.shape[1])[..., None, None]
            rollout.routes.copy_(torch.where(fresh, decoding.routes.cpu(), rollout.routes))
            if rollout.router_logp is not None:
                drawing = slice(prompts.shape[1] - 1, -1)
                found = decoding.router_logp[:, drawing].cpu()
                rollout.router_logp.copy_(torch.where(fresh[:, drawing], found, rollout.router_logp))

    def output_head(self) -> nn.Linear:
        """See `Policy.output_head`."""
        return self.head


def _alike(routes: Tensor, group: int) -> bool:
    """Whether the rows of each group have the same routes: [P * group, L, layers, k]."""
    each = routes.reshape(-1, group, *routes.shape[1:])
    return bool((each == each[:, :1]).all())
