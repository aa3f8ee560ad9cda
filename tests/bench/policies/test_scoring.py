import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.policies.tiny.network import PolicyConfig
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.policies.tiny.scoring import score
from vcpo_bench.bench.trajectories import Responses


def random_tokens(rows: int, length: int, seed: int) -> Tensor:
    return torch.randint(0, 10, (rows, length), generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def policy() -> TinyPolicy:
    policy = TinyPolicy(PolicyConfig(vocab_size=10, context=24), seed=4)
    with torch.no_grad():
        policy.head.weight.mul_(20)  # far from uniform, so that entropies differ
    return policy


@pytest.fixture
def mask() -> Tensor:
    return torch.arange(12) < torch.tensor([12, 3, 0, 7, 12, 1, 5, 9]).unsqueeze(1)


PROMPTS = random_tokens(4, 12, seed=0)
RESPONSES = random_tokens(8, 12, seed=1)


def reference(policy: TinyPolicy) -> Tensor:
    """Full distribution at each response token, from whole sequences, in the obvious way."""
    whole = torch.cat([PROMPTS.repeat_interleave(2, 0), RESPONSES], 1)
    return policy(whole).log_softmax(-1)[:, 11:-1]


@pytest.mark.parametrize("prompts", [PROMPTS, PROMPTS.repeat_interleave(2, 0)], ids=["shared", "one per row"])
def test_log_probabilities(policy: TinyPolicy, mask: Tensor, prompts: Tensor) -> None:
    scores = score(policy, Responses(prompts, RESPONSES, mask))
    expected = reference(policy).gather(-1, RESPONSES.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(scores.logp[mask], expected[mask], rtol=1e-5, atol=1e-5)
    assert not scores.logp[~mask].any()
    assert scores.logp.dtype == torch.float32


def test_statistics(policy: TinyPolicy, mask: Tensor) -> None:
    scores, p = score(policy, Responses(PROMPTS, RESPONSES, mask)), reference(policy).exp()
    expected = torch.distributions.Categorical(probs=p).entropy()
    torch.testing.assert_close(scores.entropy[mask], expected[mask], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(scores.sum_pi_sq[mask], (p * p).sum(-1)[mask], rtol=1e-4, atol=1e-5)
    assert not scores.entropy[~mask].any()
    assert not scores.sum_pi_sq[~mask].any()
    assert not scores.entropy.requires_grad
    assert not scores.sum_pi_sq.requires_grad


def test_entropy_gradient_is_there_when_asked(policy: TinyPolicy, mask: Tensor) -> None:
    scores = score(policy, Responses(PROMPTS, RESPONSES, mask))
    ours = torch.autograd.grad(scores.differentiable_entropy().sum(), policy.head.weight)[0]
    p = reference(policy)
    theirs = torch.autograd.grad(-(p.exp() * p).sum(-1)[mask].sum(), policy.head.weight)[0]
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_masked_tokens_have_no_gradient(policy: TinyPolicy, mask: Tensor) -> None:
    changed = torch.where(mask, RESPONSES, (RESPONSES + 1) % 10)

    def gradient(responses: Tensor) -> Tensor:
        logp = score(policy, Responses(PROMPTS, responses, mask)).logp
        return torch.autograd.grad(logp.sum(), policy.head.weight)[0]

    # padding comes after every scored token, so no scored token can see it
    assert torch.equal(gradient(RESPONSES), gradient(changed))


def test_same_input_same_bits(policy: TinyPolicy, mask: Tensor) -> None:
    def bits() -> tuple[Tensor, ...]:
        logp = score(policy, Responses(PROMPTS, RESPONSES, mask)).logp
        return logp.detach(), *torch.autograd.grad(logp.sum(), list(policy.parameters()))

    assert all(torch.equal(a, b) for a, b in zip(bits(), bits(), strict=True))
