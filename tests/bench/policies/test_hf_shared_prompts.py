"""A prompt evaluated once for all of its responses gives the scores and gradients of evaluating it for each."""

import hf_models
import pytest
import torch

from vcpo_bench.bench.policies.hf import network
from vcpo_bench.bench.policies.hf.shared_prompts import worth_sharing
from vcpo_bench.bench.trajectories import Responses


def batch() -> Responses:
    """Three prompts of 9, 6 and 3 tokens, four responses of 1 to 5 tokens each."""
    torch.manual_seed(0)
    prompts, responses = torch.randint(2, hf_models.VOCABULARY, (3, 9)), torch.randint(2, hf_models.VOCABULARY, (12, 5))
    prompts[1, :3] = prompts[2, :6] = hf_models.PAD
    mask = torch.arange(5) < torch.randint(1, 6, (12, 1))
    mask[0] = True
    return Responses(prompts, responses, mask)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gpt2"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_scores_and_gradients_are_those_of_every_row_alone(
    kind: str, attention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, given = [], batch()
    for shared in (True, False):
        policy = hf_models.policy(kind)
        policy.network.set_attn_implementation(attention)
        calls: list[bool] = []
        monkeypatch.setattr(network, "worth_sharing", lambda *_, to=shared, calls=calls: calls.append(to) or to)
        logp = policy.score(given).logp
        torch.autograd.backward((logp * torch.arange(1.0, 13.0).unsqueeze(1)).sum())
        assert calls == [shared]
        found.append((logp.detach(), [weight.grad for weight in policy.parameters()]))
    (logp, grads), (expected, expected_grads) = found
    assert torch.allclose(logp, expected, atol=1e-5)
    assert expected.min() < -1
    for grad, other in zip(grads, expected_grads, strict=True):
        if other is not None:
            assert (grad - other).abs().max() <= 1e-5 * max(1.0, float(other.abs().max()))


def test_a_prompt_per_response_is_never_shared() -> None:
    given = batch()
    assert len(given.each.prompts) == len(given.responses)
    assert not worth_sharing(90, 1, 6)


def test_sharing_is_worth_it_for_long_prompts_and_never_for_long_responses() -> None:
    assert worth_sharing(65, 8, 6)
    assert not worth_sharing(10, 8, 60)
    assert not worth_sharing(1000, 8, 200)
