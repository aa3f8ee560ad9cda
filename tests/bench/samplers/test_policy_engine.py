"""The engine in the learner's own process, and truncated distributions."""

import pytest
import torch

from vcpo_bench.bench.policies.hf.sampling import SamplingOptions, truncated
from vcpo_bench.bench.policies.tiny.network import PolicyConfig
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.samplers.base import PolicyEngine
from vcpo_bench.bench.samplers.published import PublishedPolicy

PROMPTS = torch.zeros(2, 3, dtype=torch.int64)
DRAWS = torch.linspace(0, 0.99, 8 * 5, dtype=torch.float64).view(8, 5)


def test_truncation_keeps_the_most_likely_tokens() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05], [0.05, 0.15, 0.3, 0.5]]).log()
    top_k = truncated(logits, SamplingOptions(top_k=2)).softmax(1)
    torch.testing.assert_close(top_k[0], torch.tensor([0.625, 0.375, 0.0, 0.0]))
    top_p = truncated(logits, SamplingOptions(top_p=0.75)).softmax(1)
    torch.testing.assert_close(top_p[1], torch.tensor([0.0, 0.0, 0.375, 0.625]))
    assert truncated(logits, SamplingOptions()) is logits


def test_shared_weights_are_the_learners_and_copied_ones_wait_for_publication() -> None:
    policy = TinyPolicy(PolicyConfig(6, 8))
    shared, copied = PolicyEngine(policy, copied=False), PolicyEngine(policy, copied=True)
    with torch.no_grad():
        policy.head.weight.add_(torch.randn(6, 64, generator=torch.Generator().manual_seed(0)))
    fresh, old = (engine.generate(PROMPTS, DRAWS, None).logp for engine in (shared, copied))
    assert not torch.equal(fresh, old)
    copied.set_weights(policy.named_parameters(), 3)
    assert torch.equal(copied.generate(PROMPTS, DRAWS, None).logp, fresh)
    assert copied.version == 3
    assert not {id(p) for p in policy.parameters()} & {id(p) for p in copied.model.parameters()}


def test_a_sampler_that_is_not_well_ends_the_cell_with_its_own_words() -> None:
    engine = PublishedPolicy(TinyPolicy(PolicyConfig(6, 8)), 1, "off", 0)
    engine.publish(0)
    engine.sampler.health = lambda: "out of memory"  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="out of memory"):
        engine.publish(1)
