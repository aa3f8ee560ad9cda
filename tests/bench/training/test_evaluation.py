import pytest
import torch

from vcpo_bench.bench.policies.tiny.scoring import score
from vcpo_bench.bench.policies.warm_start import TINY, load_warm_start
from vcpo_bench.bench.tasks import token_task
from vcpo_bench.bench.training.evaluation import SAMPLES_KEPT, evaluate
from vcpo_bench.bench.trajectories import Responses


@pytest.mark.parametrize("name", ["chain", "walk", "walk-eos"])
def test_same_policy_same_numbers(name: str) -> None:
    task = token_task(name)
    policy = load_warm_start(task)
    first = evaluate(policy, task)
    assert first == evaluate(policy, task)
    assert 0 < first.sampled_reward < first.greedy_reward <= 1


def test_greedy_reward_is_that_of_the_most_likely_tokens() -> None:
    task = token_task("walk")
    policy, prompts = load_warm_start(task), task.held_out()
    sequence = prompts
    for _ in range(task.max_response):
        sequence = torch.cat([sequence, policy(sequence)[:, -1:].argmax(-1)], dim=1)
    responses = sequence[:, task.prompt_length :]
    expected = task.reward(prompts, responses, torch.ones_like(responses, dtype=torch.bool)).mean()
    assert evaluate(policy, task).greedy_reward == pytest.approx(float(expected), abs=2 / 256)  # ties in rounding


def test_entropy_is_per_token() -> None:
    task = token_task("walk-eos")
    policy = TINY.untrained(task, 0)
    prompts, responses, mask = task.demonstrations(0, 0, 64)
    entropy = score(policy, Responses(prompts, responses, mask)).entropy
    near = float(entropy.sum() / mask.sum())  # an untrained policy is nearly uniform everywhere
    assert evaluate(policy, task).entropy == pytest.approx(near, abs=0.05)


def test_samples_are_the_first_sampled_responses() -> None:
    task = token_task("walk")
    found = evaluate(load_warm_start(task), task)
    prompts = task.held_out()
    assert len(found.samples) == SAMPLES_KEPT
    for prompt, (text, reward) in zip(prompts, found.samples, strict=False):
        assert text.startswith(f"{int(prompt[0])} to {int(prompt[1])} not ")
        legal_to_goal = "!" not in text and text.rstrip(".").endswith(str(int(prompt[1])))
        assert reward == (1.0 if legal_to_goal else 0.0)
