"""The sampler in fixed shapes: its tokens are those of `torch`, and a step leaves nothing to Python but its launch."""

import copy

import hf_models
import pytest
import torch
from hf_models import EOS, PAD
from torch.fx.experimental.proxy_tensor import make_fx

from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.captured import Step, bucket
from vcpo_bench.bench.policies.hf.graph_loop import GraphLoop
from vcpo_bench.bench.policies.hf.loading import add_adapters
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.policies.hf.sampling import SamplingOptions
from vcpo_bench.bench.policies.truncation import Truncation
from vcpo_bench.bench.trajectories import Rollout

T = 9
PROMPTS = torch.tensor([[PAD, PAD, PAD, 5, 6], [7, PAD, 8, 9, 10], [PAD, 11, 12, 13, 14]])
UNIFORMS = torch.rand(96, T, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
DRAW = Draw(PROMPTS, UNIFORMS, EOS)


def traced(step: Step) -> Step:
    """Stands in for a CUDA graph: the tensor operations of a step, recorded once and replayed without its Python."""
    state = make_fx(lambda: step())()
    waits = {"_local_scalar_dense", "nonzero", "item"}
    assert not [node for node in state.graph.nodes if any(word in str(node.target) for word in waits)]
    return state


def assert_same(found: Rollout, wanted: Rollout, tolerance: float = 0.0) -> None:
    assert torch.equal(found.mask, wanted.mask)
    assert torch.equal(found.responses, wanted.responses)
    torch.testing.assert_close(found.logp, wanted.logp, rtol=0, atol=tolerance)
    torch.testing.assert_close(found.entropy, wanted.entropy, rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gpt2"])
@pytest.mark.parametrize("slots", [0, 32])
def test_it_draws_what_torch_draws(kind: str, slots: int) -> None:
    wanted = hf_models.policy(kind).sample(DRAW)
    policy = hf_models.policy(kind, f"graph(slots={slots})")
    assert (wanted.mask.sum(1) < T).any()
    for _ in range(2):
        assert_same(policy.sample(DRAW), wanted, 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_replay_is_the_step(dtype: torch.dtype) -> None:
    """Refills, compaction, evaluation, another batch and other weights reach a step that was recorded before."""
    network = hf_models.network("llama")
    first, second = (
        CausalPolicy(copy.deepcopy(network), PAD, dtype, SamplingOptions(GraphLoop(slots, capture)))
        for slots, capture in ((64, None), (64, traced))
    )
    greedy = Draw(PROMPTS, UNIFORMS[:48].flip(1), EOS, torch.arange(48) % 2 == 0)
    for draw in (DRAW, greedy, DRAW):
        assert_same(second.sample(draw), first.sample(draw))
        for policy in (first, second):
            policy.load_trained({name: 1.1 * p for name, p in policy.trained_state().items()})
