"""Mixtures of experts in the learner: whose routes it replays, and how far its own are from the sampler's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import torch
from torch import Tensor

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.routed import UNROUTED, RoutedPolicy, RoutedScores
from vcpo_bench.bench.policies.scores import TokenScores
from vcpo_bench.bench.training.micro_batches import Piece
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.records.settings import Replay


def scores_of(policy: Policy, part: Trajectories, replay: Replay = "off", rows: bool = False) -> TokenScores:
    """Scores of trajectories under a policy.

    Args:
        policy: The policy; a `RoutedPolicy` where routes are replayed.
        part: P prompts with G responses each.
        replay: Whose routes it uses.
        rows: Every module sees one trajectory per row, see `Policy.score_rows`.
    """
    routes = _replayed(part, replay)
    if replay != "off":
        assert isinstance(policy, RoutedPolicy), "only a mixture of experts can replay routes"
        assert routes is not None, "routes are recorded where responses are drawn"
    given = part.flat(routes)
    return policy.score_rows(given.each) if rows else policy.score(given)


def router_shift(
    needs: Collection[str],
    policy: Policy,
    pieces: Sequence[Piece],
    replay: Replay,
    gather: Callable[[Sequence[Tensor]], Tensor],
) -> Tensor | None:
    """`[rows, T]` how far the routers have moved, see `Batch.router_shift`; None: not asked for, or not recorded.

    The learner's side is a forward pass of its own, which uses the experts that scoring uses: those replayed, or else
    its choice.

    Args:
        needs: What the method asks for.
        policy: The learner's policy, before the update.
        pieces: What it consumes, cut.
        replay: Whose routes scoring uses.
        gather: How pieces come together.
    """
    if "router_shift" not in needs or not isinstance(policy, RoutedPolicy) or pieces[0].part.router_logp is None:
        return None
    return gather([_moved(policy, piece.part, replay) for piece in pieces])


def _moved(policy: RoutedPolicy, part: Trajectories, replay: Replay) -> Tensor:
    assert part.routes is not None, "the routes are recorded with what the routers say of them"
    assert part.router_logp is not None, "and so is that"
    now = policy.router_logp(part.flat(_replayed(part, replay)), part.routes.flatten(0, 1))
    return (now - part.router_logp.flatten(0, 1)).abs().mean((-2, -1))


def _replayed(part: Trajectories, replay: Replay) -> Tensor | None:
    return {"off": None, "r2": part.learner_routes, "r3": part.routes}[replay]


def router_changes(
    policy: Policy,
    batch: Trajectories,
    now: int,
    scored: Sequence[tuple[Trajectories, TokenScores]],
    replay: Replay,
    gather: Callable[[Sequence[Tensor]], Tensor],
) -> dict[str, float]:
    """Shares of router decisions that differ, for the record; empty where no routes are recorded.

    The learner's own choice comes from a forward pass without replay, so that it means the same whatever is replayed.
    A decision is one position of one trajectory in one layer; two are equal if they name the same set of experts.

    Args:
        policy: The learner's policy, before the update.
        batch: What it consumes.
        now: Updates applied before this one.
        scored: The pieces, and what scoring them found.
        replay: Whose routes that used.
        gather: How they come together.
    """
    if batch.routes is None or batch.learner_routes is None or not isinstance(policy, RoutedPolicy):
        return {}
    if bool((batch.version == now)[batch.mask].all()):
        own = batch.learner_routes.flatten(0, 1)  # the weights have not moved since it chose
    elif replay == "off":
        own = gather([scores.routes for _, scores in scored if isinstance(scores, RoutedScores)])
    else:
        own = gather([policy.own_routes(part.flat()) for part, _ in scored])
    sampler, then = batch.routes.flatten(0, 1), batch.learner_routes.flatten(0, 1)
    return {
        "routers_changed": _share(differ(sampler, own), own),
        "routers_changed_engine": _share(differ(sampler, then), then),
        "routers_changed_lag": _share(differ(then, own), own),
        "tokens_rerouted": _tokens(differ(sampler, own), own),
    }


def differ(one: Tensor, other: Tensor) -> Tensor:
    """Which decisions differ: routes [B, L, layers, k] -> bool [B, L, layers]; False where either is unknown."""
    known = (one[..., 0] > UNROUTED) & (other[..., 0] > UNROUTED)
    return (one != other).any(-1) & known


def _share(changed: Tensor, routes: Tensor) -> float:
    return float(changed.sum()) / max(int((routes[..., 0] > UNROUTED).sum()), 1)


def _tokens(changed: Tensor, routes: Tensor) -> float:
    """Share of positions with a change in any layer."""
    routed = (routes[..., 0] > UNROUTED).any(-1)
    return float(torch.count_nonzero(changed.any(-1))) / max(int(routed.sum()), 1)
