"""The mixture of experts: sampling, scoring, recorded routes, and replays with their traps."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.embedded.moe import Moe
from vcpo_bench.bench.policies.moe.experts import choose
from vcpo_bench.bench.policies.moe.network import MoeConfig
from vcpo_bench.bench.policies.moe.policy import MoePolicy
from vcpo_bench.bench.policies.routed import UNROUTED, needed
from vcpo_bench.bench.policies.warm_start import load_warm_start
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import token_task
from vcpo_bench.bench.training.routing import differ
from vcpo_bench.bench.trajectories import Responses, Rollout

P, G, LP, T = 4, 3, 5, 9
PROMPTS = torch.randint(10, (P, LP), generator=torch.Generator().manual_seed(2))
DRAWS = torch.rand(P * G, T, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
EOS = 3


@pytest.fixture
def policy() -> MoePolicy:
    made = MoePolicy(MoeConfig(vocab_size=10, context=LP + T), seed=4)
    with torch.no_grad():
        made.head.weight.mul_(5)  # far from uniform, so that a wrong route shows
    return made


def routes_of(rollout: Rollout) -> Tensor:
    assert rollout.routes is not None
    return rollout.routes


@pytest.mark.parametrize("eos", [None, EOS])
def test_recorded_log_probabilities_and_routes_are_the_scored_ones(policy: MoePolicy, eos: int | None) -> None:
    rollout = policy.sample(Draw(PROMPTS, DRAWS, eos))
    scores = policy.score(Responses(PROMPTS, rollout.responses, rollout.mask))
    rows = policy.score_rows(Responses(PROMPTS.repeat_interleave(G, 0), rollout.responses, rollout.mask))
    torch.testing.assert_close(scores.logp.detach(), rollout.logp, rtol=0, atol=1e-6)
    torch.testing.assert_close(rows.logp, scores.logp, rtol=0, atol=1e-6)
    torch.testing.assert_close(scores.entropy, rollout.entropy, rtol=0, atol=1e-5)
    assert torch.equal(routes_of(rollout), policy.own_routes(Responses(PROMPTS, rollout.responses, rollout.mask)))


def test_both_ways_through_the_experts_have_one_gradient(policy: MoePolicy) -> None:
    rollout = policy.sample(Draw(PROMPTS, DRAWS))
    policy.score(Responses(PROMPTS, rollout.responses, rollout.mask)).logp.sum().backward()
    sparse = {name: p.grad.clone() for name, p in policy.named_parameters() if p.grad is not None}
    policy.zero_grad()
    policy.score_rows(Responses(PROMPTS.repeat_interleave(G, 0), rollout.responses, rollout.mask)).logp.sum().backward()
    for name, parameter in policy.named_parameters():
        torch.testing.assert_close(parameter.grad, sparse[name], rtol=1e-4, atol=1e-4)


def test_the_last_token_is_never_routed_and_nothing_behind_the_end_is(policy: MoePolicy) -> None:
    rollout = policy.sample(Draw(PROMPTS, DRAWS, EOS))
    length = rollout.mask.sum(1)
    assert int(length.min()) < T == int(length.max())
    routed = routes_of(rollout) > UNROUTED
    for row, tokens in enumerate(length.tolist()):
        assert routed[row, LP - 1 : LP + tokens - 1].all()
        assert not routed[row, LP + tokens - 1 :].any()
        assert routed[row, : LP - 1, 0].all()
        assert not routed[row, : LP - 1, 1].any()  # nothing reads the last layer's output there
    assert torch.equal(needed(rollout.mask, LP), routed[:, :, 0, 0])


def test_routes_are_distinct_experts_in_ascending_order(policy: MoePolicy) -> None:
    routes = routes_of(policy.sample(Draw(PROMPTS, DRAWS)))
    known = routes[routes[..., 0] > UNROUTED].long()
    assert (known[:, 0] < known[:, 1]).all()
    assert len(known.unique()) == 8  # every expert is used by someone


def test_replaying_the_own_routes_changes_no_bit(policy: MoePolicy) -> None:
    rollout = policy.sample(Draw(PROMPTS, DRAWS))
    given = Responses(PROMPTS, rollout.responses, rollout.mask)
    assert torch.equal(policy.score(given).logp, policy.score(given._replace(routes=routes_of(rollout))).logp)


def test_missing_routes_leave_the_choice_to_the_router(policy: MoePolicy) -> None:
    rollout = policy.sample(Draw(PROMPTS, DRAWS))
    given = Responses(PROMPTS, rollout.responses, rollout.mask)
    own = routes_of(rollout)
    other = torch.where(own > UNROUTED, (own + 1) % 8, own).sort(-1).values
    nothing = torch.full_like(other, UNROUTED)
    assert torch.equal(policy.score(given._replace(routes=nothing)).logp, policy.score(given).logp)
    moved = policy.score(given._replace(routes=other)).logp
    assert (moved - policy.score(given).logp).abs().mean() > 1e-3
    # half a response replayed: tokens before the first replayed position are those of the live routers
    half = nothing.clone()
    half[:, LP + 4 :] = other[:, LP + 4 :]
    mixed = policy.score(given._replace(routes=half)).logp
    live = policy.score(given).logp  # an expert's products have other sizes here, and round otherwise
    torch.testing.assert_close(mixed[:, :5], live[:, :5], rtol=0, atol=1e-6)
    assert (mixed[:, 5:] - live[:, 5:]).abs().mean() > 1e-3


def test_a_route_belongs_to_the_position_that_is_fed_not_to_the_token_it_predicts(policy: MoePolicy) -> None:
    rollout = policy.sample(Draw(PROMPTS, DRAWS))
    given = Responses(PROMPTS, rollout.responses, rollout.mask)
    shifted = routes_of(rollout).roll(1, 1)
    assert torch.equal(policy.score(given._replace(routes=routes_of(rollout))).logp, policy.score(given).logp)
    assert (policy.score(given._replace(routes=shifted)).logp - rollout.logp).abs().mean() > 1e-3


@pytest.mark.parametrize("rows", [False, True])
def test_gradients_reach_routers_whose_choice_was_replayed(policy: MoePolicy, rows: bool) -> None:
    """Gates gathered from scores that are zero outside the live top k would be zero, and so would their gradient."""
    rollout = policy.sample(Draw(PROMPTS, DRAWS))
    own = routes_of(rollout)
    everywhere = torch.where(own > UNROUTED, (own + 4) % 8, own).sort(-1).values
    prompts = PROMPTS.repeat_interleave(G, 0) if rows else PROMPTS
    score = policy.score_rows if rows else policy.score
    given = Responses(prompts, rollout.responses, rollout.mask, routes=everywhere)
    logp = score(given).logp
    assert (logp.detach() - rollout.logp).abs().mean() > 1e-3
    logp.sum().backward()
    for depth, block in enumerate(policy.layers()):
        gradient = block.experts.router.weight.grad
        assert gradient is not None
        used = everywhere[:, :, depth][own[:, :, depth] > UNROUTED].long().unique()
        assert len(used) > 4
        assert (gradient[used].abs().amax(1) > 1e-6).all()
    before = logp.detach()
    with torch.no_grad():
        policy.layers()[0].experts.router.weight.add_(0.1 * policy.layers()[0].experts.router.weight.grad)
        after = score(given).logp
    assert after.sum() > before.sum()  # the gates follow the live logits


def test_recorded_experts_are_used_as_given() -> None:
    logits = torch.tensor([[3.0, 2.0, 1.0, 0.0]] * 2)
    recorded = torch.tensor([[1, 3], [UNROUTED, UNROUTED]], dtype=torch.int8)
    assert choose(logits, 2, recorded).tolist() == [[1, 3], [0, 1]]
    assert choose(logits, 2, None).tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("eos", [None, EOS])
def test_pieces_of_responses_have_the_routes_of_whole_ones(policy: MoePolicy, cached: bool, eos: int | None) -> None:
    policy.records_routers = True
    whole = policy.sample(Draw(PROMPTS, DRAWS, eos))
    asked = Draw(PROMPTS, DRAWS, eos)
    rollout = policy.empty_rollout(asked)
    decoder = policy.decoding(PROMPTS, P * G, T)
    for start, stop in pairwise((0, 4, 7, T)):
        if start and not cached:
            prompts = torch.cat([PROMPTS.repeat_interleave(G, 0), rollout.responses[:, :start]], 1)
            decoder = policy.decoding(prompts, P * G, T - start)
        policy.extend(rollout, decoder, asked, range(start, stop))
    assert torch.equal(rollout.responses, whole.responses)
    assert torch.equal(routes_of(rollout), routes_of(whole))
    assert rollout.router_logp is not None
    torch.testing.assert_close(rollout.router_logp, whole.router_logp, rtol=0, atol=1e-5)


@pytest.mark.parametrize("eos", [None, EOS])
def test_recorded_words_of_the_routers_are_those_of_a_forward_pass(policy: MoePolicy, eos: int | None) -> None:
    assert policy.sample(Draw(PROMPTS, DRAWS, eos)).router_logp is None
    policy.records_routers = True
    rollout = policy.sample(Draw(PROMPTS, DRAWS, eos))
    given, routes = Responses(PROMPTS, rollout.responses, rollout.mask), routes_of(rollout)
    assert rollout.router_logp is not None
    for found in (policy.router_logp(each, routes) for each in (given, given._replace(routes=routes))):
        torch.testing.assert_close(rollout.router_logp, found, rtol=0, atol=1e-5)
    assert not rollout.router_logp[~rollout.mask].any()
    total = rollout.router_logp[rollout.mask].exp().sum(-1)  # of the two likeliest of eight experts
    assert 2 / 8 < float(total.min()) < float(total.max()) < 1
    other = policy.router_logp(given, torch.where(routes > UNROUTED, (routes + 3) % 8, routes))
    assert (other[rollout.mask].sum(-1) < rollout.router_logp[rollout.mask].sum(-1)).float().mean() > 0.9


@pytest.mark.parametrize("task", ["chain", "walk"])
def test_the_documented_router_noise_changes_a_tenth_of_the_choices(task: str) -> None:
    made, bound = load_warm_start(token_task(task), kind=Moe()), token_task(task)
    assert isinstance(made, MoePolicy)
    prompts = bound.held_out()[:32]
    draws = torch.from_numpy(uniforms(0, "test", 0, len(prompts) * 4, bound.max_response))
    made.router_noise = 0.4
    rollout = made.sample(Draw(prompts, draws, bound.eos))
    own = made.own_routes(Responses(prompts, rollout.responses, rollout.mask))
    share = float(differ(routes_of(rollout), own).sum() / (own[..., 0] > UNROUTED).sum())
    assert 0.08 <= share <= 0.13
    given = Responses(prompts, rollout.responses, rollout.mask)
    with torch.no_grad():
        plain, replayed = (
            (made.score(given._replace(routes=r)).logp - rollout.logp).square().mean() for r in (None, rollout.routes)
        )
    assert replayed < 0.6 * plain  # replay takes the greater part of the engine's mismatch; the gates keep the rest
