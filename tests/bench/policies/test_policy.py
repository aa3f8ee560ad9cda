import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vcpo_bench.bench.policies.tiny.network import Block, PolicyConfig
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy

CONFIG = PolicyConfig(vocab_size=10, context=24)


def tokens(rows: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 10, (rows, length), generator=torch.Generator().manual_seed(seed))


def plain_block(block: Block, x: Tensor) -> Tensor:
    """The layer again, written with PyTorch's own attention."""
    B, L, D = x.shape
    query, key, value = block.qkv(block.norm1(x)).view(B, L, 3, block.heads, -1).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    x = x + block.out(mixed.transpose(1, 2).reshape(B, L, D))
    return x + block.down(F.gelu(block.up(block.norm2(x))))


def test_forward_equals_a_plain_transformer() -> None:
    policy, given = TinyPolicy(CONFIG), tokens(5, 24)
    x = policy.tokens(given) + policy.positions.weight
    for block in policy.layers():
        x = plain_block(block, x)
    torch.testing.assert_close(policy(given), policy.head(policy.norm(x)), rtol=1e-5, atol=1e-6)


def test_size_and_type() -> None:
    policy = TinyPolicy(CONFIG)
    assert 90_000 < sum(p.numel() for p in policy.parameters()) < 110_000
    assert {p.dtype for p in policy.parameters()} == {torch.float32}
    assert {type(m) for m in policy.modules() if next(m.parameters(recurse=False), None) is not None} == {
        nn.Linear,
        nn.LayerNorm,
        nn.Embedding,
    }


def test_the_seed_decides_the_weights_and_the_global_state_is_untouched() -> None:
    before = torch.get_rng_state()
    one, again, other = TinyPolicy(CONFIG, seed=1), TinyPolicy(CONFIG, seed=1), TinyPolicy(CONFIG, seed=2)
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), again.parameters(), strict=True))
    assert not torch.equal(one.head.weight, other.head.weight)


def test_a_fresh_policy_is_nearly_uniform() -> None:
    logp = TinyPolicy(CONFIG)(tokens(16, 24)).log_softmax(-1)
    entropy = -(logp.exp() * logp).sum(-1)
    assert entropy.min() > 0.9 * math.log(10)


def test_the_future_is_invisible() -> None:
    policy, given = TinyPolicy(CONFIG), tokens(4, 20)
    changed = given.clone()
    changed[:, 12:] = tokens(4, 8, seed=9)
    assert torch.equal(policy(given)[:, :12], policy(changed)[:, :12])


@pytest.mark.parametrize(("prompt", "response"), [(12, 12), (1, 5), (0, 6)])
def test_shared_prompts_equal_whole_sequences(prompt: int, response: int) -> None:
    policy, prompts, responses = TinyPolicy(CONFIG), tokens(3, prompt), tokens(12, response, seed=1)
    whole = policy.hidden(torch.cat([prompts.repeat_interleave(4, 0), responses], 1))[:, prompt:]
    torch.testing.assert_close(policy.hidden_after(prompts, responses), whole, rtol=1e-5, atol=1e-5)


def test_shared_prompts_give_the_same_gradient() -> None:
    policy, prompts, responses = TinyPolicy(CONFIG), tokens(3, 12), tokens(12, 12, seed=1)
    weights = torch.randn(12, 12, 64, generator=torch.Generator().manual_seed(0))

    def gradient(hidden: Tensor) -> Tensor:
        grads = torch.autograd.grad((hidden * weights).sum(), list(policy.parameters()), allow_unused=True)
        return torch.cat([g.flatten() for g in grads if g is not None])

    whole = gradient(policy.hidden(torch.cat([prompts.repeat_interleave(4, 0), responses], 1))[:, 12:])
    shared = gradient(policy.hidden_after(prompts, responses))
    assert (whole - shared).norm() < 1e-5 * whole.norm()


def test_hooks_see_one_trajectory_per_row() -> None:
    policy, seen = TinyPolicy(CONFIG), []
    for module in policy.modules():
        if isinstance(module, nn.Linear | nn.Embedding | nn.LayerNorm):
            module.register_forward_hook(lambda _, inputs, output: seen.append((inputs[0].shape[:2], output.shape[:2])))
    policy(tokens(6, 9))
    assert len(seen) == 2 * 6 + 4
    assert set(seen) == {((6, 9), (6, 9))}
