"""Sampler expressions, and the sampler in the learner's own process."""

import pytest
import torch

from vcpo_bench.bench.policies.hf.sampling import SamplingOptions, truncated
from vcpo_bench.bench.policies.tiny.network import PolicyConfig
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.samplers.base import InProcess, parse_sampler
from vcpo_bench.bench.samplers.published import PublishedPolicy
from vcpo_bench.errors import UsageError

PROMPTS = torch.zeros(2, 3, dtype=torch.int64)
DRAWS = torch.linspace(0, 0.99, 8 * 5, dtype=torch.float64).view(8, 5)


@pytest.mark.parametrize(
    ("expression", "canonical"),
    [
        ("torch", "torch"),
        (" torch( slots = 0 ) ", "torch"),
        ("torch(slots=64)", "torch(slots=64)"),
        ("vllm", "vllm"),
        ("vllm( dtype = bfloat16 )", "vllm(dtype=bfloat16)"),
        ("vllm(memory=2.5)", "vllm(memory=2.5)"),
        ("vllm-server(weights=nccl, pause=abort)", "vllm-server(pause=abort,weights=nccl)"),
        ("vllm-server(weights=disk,pause=wait)", "vllm-server"),
        ("generate()", "generate"),
        ("torch(top_p=1,top_k=0)", "torch"),
        ("generate(truncate=allow,top_p=0.90,top_k=5)", "generate(top_k=5,top_p=0.9,truncate=allow)"),
    ],
)
def test_equal_meaning_is_equal_text(expression: str, canonical: str) -> None:
    spec = parse_sampler(expression)
    assert spec.canonical == canonical
    assert parse_sampler(canonical) == spec


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("sglang", "choose torch"),
        ("vllm(top_p=0.9)", "vllm has no top_p"),
        ("vllm(dtype=int8)", "dtype=float32"),
        ("vllm(memory=0)", "memory=GIB"),
        ("vllm-server(pause=stop)", "pause=wait"),
        ("torch(slots=-1)", "slots=-1"),
        ("torch(slots=many)", "slots=many"),
        ("torch(beams=4)", "beams=4"),
        ("torch(top_p=0)", "top_p=0"),
        ("torch(top_p=0.95)", "truncate=allow"),
        ("generate(top_k=20)", "truncate=allow"),
        ("generate(slots=4)", "generate has no slots"),
    ],
)
def test_what_cannot_be_used_is_named(expression: str, named: str) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        parse_sampler(expression)
    assert "\n" not in str(caught.value)


def test_truncation_keeps_the_most_likely_tokens() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05], [0.05, 0.15, 0.3, 0.5]]).log()
    top_k = truncated(logits, SamplingOptions(top_k=2)).softmax(1)
    torch.testing.assert_close(top_k[0], torch.tensor([0.625, 0.375, 0.0, 0.0]))
    top_p = truncated(logits, SamplingOptions(top_p=0.75)).softmax(1)
    torch.testing.assert_close(top_p[1], torch.tensor([0.0, 0.0, 0.375, 0.625]))
    assert truncated(logits, SamplingOptions()) is logits


def test_shared_weights_are_the_learners_and_copied_ones_wait_for_publication() -> None:
    policy = TinyPolicy(PolicyConfig(6, 8))
    shared, copied = InProcess(policy, copied=False), InProcess(policy, copied=True)
    with torch.no_grad():
        policy.head.weight.add_(torch.randn(6, 64, generator=torch.Generator().manual_seed(0)))
    fresh, old = (sampler.generate(PROMPTS, DRAWS, None).logp for sampler in (shared, copied))
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
