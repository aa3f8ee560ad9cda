"""Responses in which policy and environment take turns: the mask, log-probabilities, segments and replays."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.conversation import Conversation, respond
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.warm_start import load_warm_start
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import EnvironmentTask, token_task
from vcpo_bench.bench.trajectories import Responses, Rollout
from vcpo_bench.methods import Batch, parse_method
from vcpo_bench.records.step_facts import EPISODE_FACTS

GROUP = 4


@pytest.fixture(scope="module")
def task() -> EnvironmentTask:
    found = token_task("lookup")
    assert isinstance(found, EnvironmentTask)
    return found


@pytest.fixture(scope="module")
def policy(task: EnvironmentTask) -> Policy:
    return load_warm_start(task)


@pytest.fixture(scope="module")
def asked(task: EnvironmentTask) -> tuple[Tensor, Tensor]:
    prompts = task.held_out(8)
    return prompts, torch.from_numpy(uniforms(0, "test", 0, 8 * GROUP, task.max_response))


@pytest.fixture(scope="module")
def rollout(task: EnvironmentTask, policy: Policy, asked: tuple[Tensor, Tensor]) -> Rollout:
    return respond(policy, task, Draw(*asked))


def test_the_mask_is_true_where_the_policy_spoke(
    task: EnvironmentTask, asked: tuple[Tensor, Tensor], rollout: Rollout
) -> None:
    assert rollout.episodes is not None
    observed = rollout.episodes[:, EPISODE_FACTS.index("observed")]
    prompts = asked[0].repeat_interleave(GROUP, 0).tolist()
    for row, prompt in enumerate(prompts):
        tokens, mask = rollout.responses[row].tolist(), rollout.mask[row].tolist()
        turns = task.turns_of(tokens, mask)
        for place, (said, heard) in enumerate(turns[:-1]):
            assert heard == task.reply(prompt, turns[:place], said).observed
        length = max(place for place, mine in enumerate(mask) if mine) + 1
        assert length - sum(mask) == observed[row]
    assert int(observed.sum()) > 100


def test_observed_tokens_have_no_log_probability_and_the_others_the_learners(
    policy: Policy, asked: tuple[Tensor, Tensor], rollout: Rollout
) -> None:
    assert not rollout.logp[~rollout.mask].any()
    assert not rollout.entropy[~rollout.mask].any()
    scores = policy.score(Responses(asked[0], rollout.responses, rollout.mask))
    assert torch.allclose(scores.logp, rollout.logp, atol=1e-5)


@pytest.mark.parametrize("cuts", [[7], [1, 2, 3], [4, 5, 16]])
def test_responses_drawn_in_segments_are_the_same(
    task: EnvironmentTask, policy: Policy, asked: tuple[Tensor, Tensor], rollout: Rollout, cuts: list[int]
) -> None:
    """With the talk kept, and with one that is replayed from the tokens, as after a kill."""
    (prompts, noise), T = asked, task.max_response
    for replayed in (False, True):
        found = Rollout.empty(len(noise), T, None)
        talk, decoder = Conversation(task, prompts, len(noise), T), policy.decoding(prompts, len(noise), T)
        for start, stop in zip([0, *cuts], [*cuts, T], strict=True):
            if replayed:
                talk = Conversation(task, prompts, len(noise), T)
                talk.replay(found, start)
            talk.extend(policy, found, decoder, Draw(prompts, noise), range(start, stop))
        found = replace(found, episodes=talk.facts())
        for name in ("responses", "mask", "logp", "entropy", "episodes"):
            assert torch.equal(getattr(found, name), getattr(rollout, name)), name


def test_greedy_rows_take_the_likeliest_token(
    task: EnvironmentTask, policy: Policy, asked: tuple[Tensor, Tensor], rollout: Rollout
) -> None:
    prompts, noise = asked
    greedy = torch.arange(len(noise)) % 2 == 0
    found = respond(policy, task, Draw(prompts, noise, None, greedy))
    again = respond(policy, task, Draw(prompts, 1 - noise, None, greedy))
    assert torch.equal(found.responses[greedy], again.responses[greedy])
    assert torch.equal(found.responses[~greedy], rollout.responses[~greedy])


def stale(policy: Policy, task: EnvironmentTask) -> Policy:
    moved = policy.replica()
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return moved


def test_a_forgotten_mask_changes_ess_and_ours_does_not(
    task: EnvironmentTask, policy: Policy, asked: tuple[Tensor, Tensor], rollout: Rollout
) -> None:
    """Frameworks fill in 0.0 for what a sampler did not draw; without the mask the policy is compared with that."""
    prompts, reward = asked[0], task.reward(asked[0], rollout.responses, rollout.mask)
    length = torch.arange(task.max_response)
    alive = length <= (rollout.mask * length).amax(1, keepdim=True)  # up to the last token the policy drew
    group = torch.arange(len(reward)) // GROUP
    learner = stale(policy, task)

    def ess(counted: Tensor, filler: float) -> float:
        with torch.no_grad():
            logp = learner.score(Responses(prompts, rollout.responses, counted)).logp
        behavior = rollout.logp.masked_fill(~rollout.mask, filler)
        batch = Batch.from_rows(logp=logp, behavior_logp=behavior, mask=counted, reward=reward, group=group)
        return float(parse_method("vcpo").__call__(with_norms(batch)).metrics["ess_ratio"])

    ours = ess(rollout.mask, 0.0)
    assert ours == ess(rollout.mask, -3.0)
    assert 0.1 < ours < 1
    assert abs(ess(alive, 0.0) - ours) > 0.05


def with_norms(batch: Batch) -> Batch:
    return replace(batch, score_norm_sq=torch.ones_like(batch.reward))


@pytest.mark.parametrize("method", ["vcpo", "clip", "vespo", "gspo", "clip+kl"])
def test_no_method_gives_an_observed_token_a_coefficient(
    task: EnvironmentTask, policy: Policy, asked: tuple[Tensor, Tensor], rollout: Rollout, method: str
) -> None:
    """Whatever the log-probabilities of observed tokens are, even not a number."""
    updates = []
    for filler in (0.0, float("nan")):
        behavior = rollout.logp.masked_fill(~rollout.mask, filler)
        logp = (
            policy.score(Responses(asked[0], rollout.responses, rollout.mask))
            .logp.detach()
            .masked_fill(~rollout.mask, filler)
        )
        reward = task.reward(asked[0], rollout.responses, rollout.mask)
        group = torch.arange(len(reward)) // GROUP
        batch = Batch.from_rows(logp=logp, behavior_logp=behavior, mask=rollout.mask, reward=reward, group=group)
        updates.append(parse_method(method)(replace(with_norms(batch), reference_logp=batch.logp)))
    first, second = (update.coefficients for update in updates)
    assert torch.equal(first, second)
    assert first.any()
    assert not first.flatten(0, 1)[~rollout.mask].any()
