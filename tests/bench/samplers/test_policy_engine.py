"""The engine in the learner's own process."""

import pytest
import torch

from vcpo_bench.bench.policies.tiny.network import PolicyConfig
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.policies.truncation import Truncation
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.bench.samplers.engines.base import PolicyEngine
from vcpo_bench.bench.samplers.engines.published import PublishedPolicy

PROMPTS = torch.zeros(2, 3, dtype=torch.int64)
DRAWS = torch.linspace(0, 0.99, 8 * 5, dtype=torch.float64).view(8, 5)


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


def test_a_regime_makes_its_sampler_with_all_it_asks_for() -> None:
    policy = TinyPolicy(PolicyConfig(6, 8))
    plain = PublishedPolicy.under(REGIMES.parse("fifo"), policy, 0)
    assert plain.policy is policy
    assert plain.truncation is None
    cut = PublishedPolicy.under(REGIMES.parse("fifo(engine_noise=bf16,mask_replay=on,top_k=3,top_p=0.9)"), policy, 0)
    assert cut.policy is not policy
    assert cut.truncation == Truncation(0.9, 3, True)
