"""The sampler in fixed shapes: its tokens are those of `torch`, and a step leaves nothing to Python but its launch."""

import copy
from contextlib import nullcontext
from dataclasses import replace

import hf_models
import pytest
import torch
from hf_models import EOS, PAD
from torch.fx.experimental.proxy_tensor import make_fx

from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf import captured
from vcpo_bench.bench.policies.hf.captured import Step, bucket
from vcpo_bench.bench.policies.hf.graph_loop import GraphLoop
from vcpo_bench.bench.policies.hf.loading import add_adapters
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.policies.hf.sampling import SamplingOptions
from vcpo_bench.bench.policies.truncation import Truncation
from vcpo_bench.bench.trajectories import Rollout
from vcpo_bench.errors import UsageError

T = 9
PROMPTS = torch.tensor([[PAD, PAD, PAD, 5, 6], [7, PAD, 8, 9, 10], [PAD, 11, 12, 13, 14]])
UNIFORMS = torch.rand(96, T, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
DRAW = Draw(PROMPTS, UNIFORMS, EOS)


def traced(step: Step) -> Step:
    """Stands in for a CUDA graph: the tensor operations of a step, recorded once and replayed without its Python.

    Steps run before the capture, as on a GPU; recording runs another one.
    """
    for _ in range(captured._WARM):
        step()
    state = make_fx(lambda: step())()
    waits = ("_local_scalar_dense", "nonzero", "is_nonzero")
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


@pytest.mark.parametrize(
    ("kind", "dtype", "cut"),
    [
        ("llama", torch.float32, None),
        ("llama", torch.bfloat16, None),
        ("qwen2", torch.bfloat16, Truncation(top_k=3, replay=True)),
        ("gpt2", torch.bfloat16, Truncation(top_p=0.5)),
    ],
)
def test_a_replay_is_the_step(kind: str, dtype: torch.dtype, cut: Truncation | None) -> None:
    """Refills, compaction, evaluation, another batch and other weights reach a step that was recorded before."""
    network = hf_models.network(kind)
    first, second = (
        CausalPolicy(copy.deepcopy(network), PAD, dtype, SamplingOptions(GraphLoop(slots, capture)))
        for slots, capture in ((64, None), (64, traced))
    )
    greedy = Draw(PROMPTS, UNIFORMS[:48].flip(1), EOS, torch.arange(48) % 2 == 0)
    for draw in (DRAW, greedy, DRAW):
        draw = replace(draw, truncation=cut)
        assert_same(second.sample(draw), first.sample(draw))
        for policy in (first, second):
            policy.load_trained({name: 1.1 * p for name, p in policy.trained_state().items()})


@pytest.mark.parametrize("lora", [0, 2])
def test_copies_of_weights_give_the_bits_of_autocast(lora: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after weights have changed: the copies are refreshed with every batch."""
    network = hf_models.network("llama")
    if lora:
        add_adapters(network, lora)
    loops = [SamplingOptions(GraphLoop(64)) for _ in range(2)]
    policies = [CausalPolicy(copy.deepcopy(network), PAD, torch.bfloat16, loop) for loop in loops]
    drawn = []
    for number, policy in enumerate(policies):
        with monkeypatch.context() as patch:
            if number:
                patch.setattr(captured, "cast_weights", lambda _: {})
            for _ in range(2):
                drawn.append(policy.sample(DRAW))
                policy.load_trained({name: p + 0.1 for name, p in policy.trained_state().items()})
    assert captured.cast_weights(policies[0])
    assert not torch.equal(drawn[0].logp, drawn[1].logp)
    assert_same(drawn[0], drawn[2])
    assert_same(drawn[1], drawn[3])


def test_truncation_greedy_rows_and_responses_without_end() -> None:
    cut = Truncation(top_k=3, replay=True)
    draw = Draw(PROMPTS, UNIFORMS, None, torch.arange(96) % 3 == 0, cut)
    wanted, found = (hf_models.policy("llama", sampler).sample(draw) for sampler in ("torch", "graph"))
    assert_same(found, wanted, 1e-5)
    assert found.kept is not None
    assert wanted.kept is not None
    assert torch.equal(found.kept, wanted.kept)


def test_a_batch_does_not_change_the_one_before_it() -> None:
    policy = hf_models.policy("llama", "graph")
    first = policy.sample(DRAW)
    before = copy.deepcopy(first)
    policy.sample(Draw(PROMPTS, UNIFORMS.flip(0), EOS))
    assert_same(first, before)


def test_a_copy_of_a_policy_has_a_program_of_its_own() -> None:
    policy = hf_models.policy("llama", "graph")
    before = policy.sample(DRAW)
    other = policy.replica()
    policy.load_trained({name: 0.5 * p for name, p in policy.trained_state().items()})
    assert_same(other.sample(DRAW), before)


def test_a_large_evaluation_does_not_cost_training_its_program() -> None:
    captures = []

    def counted(step: Step) -> Step:
        captures.append(step)
        return step

    policy = CausalPolicy(hf_models.network("llama"), PAD, sampling=SamplingOptions(GraphLoop(32, counted)))
    large = Draw(PROMPTS, UNIFORMS.repeat(7, 1), EOS)
    for draw in (DRAW, large, DRAW, large):
        policy.sample(draw)
    assert len(captures) == 2


def test_buckets() -> None:
    assert [bucket(rows) for rows in (0, 1, 32, 33, 129, 256, 1000)] == [32, 32, 32, 64, 192, 256, 256]


def test_free_slots_stay_within_the_positions_of_a_model() -> None:
    """Caches are wider than any sequence, and positions that are learned end with it."""
    longest, draw = PROMPTS.shape[1] + T - 1, Draw(PROMPTS, UNIFORMS[:48], EOS)  # 16 of 32 slots wait for the rest
    wanted, found = (
        hf_models.policy("gpt2", sampler, n_positions=longest).sample(draw) for sampler in ("torch", "graph(slots=32)")
    )
    assert_same(found, wanted, 1e-5)


def test_responses_that_are_split_need_no_program() -> None:
    policy, wanted = hf_models.policy("llama", "graph"), hf_models.policy("llama").sample(DRAW)
    rollout, decoding = policy.empty_rollout(DRAW), policy.decoding(PROMPTS, len(UNIFORMS), T)
    for part in (range(4), range(4, T)):
        policy.extend(rollout, decoding, DRAW, part)
    assert_same(rollout, wanted, 1e-5)


@pytest.mark.parametrize(
    ("cause", "told", "wanted"),
    [
        (
            RuntimeError("operation not permitted when stream is capturing\nmore"),
            UsageError,
            r"\(operation not permitted when stream is capturing\); use --sampler torch",
        ),
        (torch.OutOfMemoryError("full"), torch.OutOfMemoryError, "full"),
    ],
)
def test_a_step_that_cannot_be_captured_is_one_line(
    cause: RuntimeError, told: type[Exception], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(step: Step) -> Step:
        try:
            raise cause
        finally:
            raise RuntimeError("operation failed due to a previous error during capture")

    monkeypatch.setattr(captured, "_recorded", failing)
    monkeypatch.setattr(torch.cuda, "device", nullcontext)
    with pytest.raises(told, match=wanted):
        captured.cuda_graph(torch.device("cuda"), lambda: None)
