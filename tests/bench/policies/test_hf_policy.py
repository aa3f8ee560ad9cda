"""Language models as policies: log-probabilities against the model's own logits, and samplers against each other."""

import itertools
from typing import Any

import hf_models
import pytest
import torch
from hf_models import EOS, PAD
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.loading import add_adapters
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.policies.truncation import Truncation
from vcpo_bench.bench.samplers.engines.base import PolicyEngine
from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.trajectories import Responses, Rollout
from vcpo_bench.errors import UsageError

KINDS = ("llama", "qwen2", "gpt2")
T = 9
PROMPTS = torch.tensor([[PAD, PAD, PAD, 5, 6], [7, PAD, 8, 9, 10], [PAD, 11, 12, 13, 14]])
DRAWS = torch.rand(12, T, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def drawn(kind: str, sampler: str = "torch", **changes: Any) -> tuple[Any, Rollout]:
    made = hf_models.policy(kind, sampler, **changes)
    return made, made.sample(Draw(PROMPTS, DRAWS, EOS))


def own_logits(network: Any, prompt: Tensor, response: Tensor) -> Tensor:
    """[T, V] log-probabilities of one unpadded sequence by the model itself."""
    real = prompt[int((prompt != PAD).int().argmax()) :]
    tokens = torch.cat([real, response])[None]
    logits: Tensor = network(input_ids=tokens).logits[0, len(real) - 1 : -1]
    return logits.log_softmax(1)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_model_itself_without_padding(kind: str) -> None:
    policy, rollout = drawn(kind)
    scores = policy.score(Responses(PROMPTS, rollout.responses, rollout.mask))
    assert (rollout.mask.sum(1) < T).any()
    for row, mask in enumerate(rollout.mask):
        wanted = own_logits(policy.network, PROMPTS[row // 4], rollout.responses[row][mask])
        chosen = wanted.gather(1, rollout.responses[row][mask][:, None])[:, 0]
        torch.testing.assert_close(scores.logp[row][mask], chosen, rtol=0, atol=1e-5)
        torch.testing.assert_close(scores.entropy[row][mask], -(wanted.exp() * wanted).sum(1), rtol=0, atol=1e-5)
        torch.testing.assert_close(scores.sum_pi_sq[row][mask], (2 * wanted).exp().sum(1), rtol=0, atol=1e-5)
        assert not scores.logp[row][~mask].any()


@pytest.mark.parametrize(("kind", "sampler"), list(itertools.product(KINDS, ("torch", "torch(slots=5)", "generate"))))
def test_sampler_and_learner_agree_at_lag_0(kind: str, sampler: str) -> None:
    policy, rollout = drawn(kind, sampler)
    scores = policy.score(Responses(PROMPTS, rollout.responses, rollout.mask))
    assert (scores.logp - rollout.logp).abs().max() < 1e-5
    assert (scores.entropy - rollout.entropy).abs().max() < 1e-5
    ended = rollout.responses == EOS
    assert torch.equal(rollout.mask, (ended.cumsum(1) - ended.int()) == 0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_responses_do_not_depend_on_how_they_are_scheduled(kind: str) -> None:
    _, all_at_once = drawn(kind)
    for sampler in ("torch(slots=1)", "torch(slots=5)", "generate"):
        other = drawn(kind, sampler)[1]
        assert torch.equal(other.responses, all_at_once.responses)
        assert torch.equal(other.mask, all_at_once.mask)
        torch.testing.assert_close(other.logp, all_at_once.logp, rtol=0, atol=1e-5)


def test_what_generate_would_do_by_itself_is_not_done() -> None:
    plain, settled = hf_models.policy("llama", "generate"), hf_models.policy("llama", "generate")
    own = settled.network.generation_config
    own.repetition_penalty, own.max_length, own.min_new_tokens = 5.0, 6, 8
    rollouts = [policy.sample(Draw(PROMPTS, DRAWS, EOS)) for policy in (plain, settled)]
    assert torch.equal(rollouts[0].responses, rollouts[1].responses)
    assert settled.network.generation_config is own


def test_greedy_rows_take_the_most_likely_token() -> None:
    policy = hf_models.policy("llama")
    rollout = policy.sample(Draw(PROMPTS, DRAWS, None, greedy=torch.arange(12) % 2 == 0))
    wanted = own_logits(policy.network, PROMPTS[1], rollout.responses[4])
    assert torch.equal(wanted.argmax(1), rollout.responses[4])
    assert torch.equal(rollout.responses[5], policy.sample(Draw(PROMPTS, DRAWS)).responses[5])


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_responses_may_grow_in_pieces(kind: str) -> None:
    policy, whole = drawn(kind)
    grown, reread = (Rollout.empty(12, T, EOS) for _ in range(2))
    decoding = policy.decoding(PROMPTS, 12, T)
    for start in range(0, T, 4):
        places = range(start, min(start + 4, T))
        policy.extend(grown, decoding, Draw(PROMPTS, DRAWS, EOS), places)
        restored = policy.decoding(PROMPTS, 12, T)  # as after a checkpoint
        restored.caches, restored.position = [cache.clone() for cache in decoding.caches], decoding.position
        decoding = restored
        seen = torch.cat([PROMPTS.repeat_interleave(4, 0), reread.responses[:, :start]], 1)
        policy.extend(reread, policy.decoding(seen, 12, T - start), Draw(PROMPTS, DRAWS, EOS), places)
    for other in (grown, reread):
        assert torch.equal(other.responses, whole.responses)
        assert torch.equal(other.mask, whole.mask)
        torch.testing.assert_close(other.logp, whole.logp, rtol=0, atol=1e-5)


def gradient(policy: Any, rows: bool = False) -> Tensor:
    rollout = policy.sample(Draw(PROMPTS, DRAWS, EOS))
    weights = torch.linspace(-1, 1, 12 * T).view(12, T)
    given = Responses(PROMPTS.repeat_interleave(4, 0), rollout.responses, rollout.mask)
    scores = (policy.score_rows if rows else policy.score)(given)
    policy.zero_grad()
    (weights * (scores.logp + 0.1 * scores.differentiable_entropy())).sum().backward()
    return torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None])


@pytest.mark.parametrize("kind", KINDS)
def test_chunked_and_plain_gradients_agree(kind: str) -> None:
    policy = hf_models.policy(kind, tie_word_embeddings=kind != "llama")
    torch.testing.assert_close(gradient(policy), gradient(policy, rows=True), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_recomputed_activations_change_nothing_but_are_computed_twice(kind: str) -> None:
    plain = hf_models.policy(kind)
    again = CausalPolicy(hf_models.network(kind), PAD, recompute=True)
    assert torch.equal(again.sample(Draw(PROMPTS, DRAWS, EOS)).logp, plain.sample(Draw(PROMPTS, DRAWS, EOS)).logp)
    calls = []
    inner = next(m for m in again.network.modules() if type(m).__name__ in ("LlamaMLP", "GPT2MLP"))
    inner.register_forward_pre_hook(lambda *_: calls.append(1))
    scored = again.score(Responses(PROMPTS, torch.full((12, T), 4), torch.ones(12, T, dtype=torch.bool)))
    assert len(calls) == 1
    scored.logp.sum().backward()
    assert len(calls) == 2
    torch.testing.assert_close(gradient(again), gradient(plain))


def test_score_norms_are_those_of_single_trajectories() -> None:
    policy, rollout = drawn("llama", tie_word_embeddings=True)
    norms = ScoreNorms(policy)
    with norms.record():
        scores = policy.score_rows(Responses(PROMPTS.repeat_interleave(4, 0), rollout.responses, rollout.mask))
    found = norms.squared_norms(scores.logp, scores.mask)
    norms.close()
    for row in (0, 5, 11):
        policy.zero_grad()
        policy.score(
            Responses(PROMPTS[row // 4][None], rollout.responses[row][None], rollout.mask[row][None])
        ).logp.sum().backward()
        alone = sum(p.grad.square().sum() for p in policy.parameters() if p.grad is not None)
        torch.testing.assert_close(found[row], torch.as_tensor(alone), rtol=1e-3, atol=1e-5)


def test_score_norms_of_recomputed_activations_are_not_taken_in_bfloat16() -> None:
    prompts, responses = torch.randint(2, 99, (4, 36), generator=torch.Generator().manual_seed(0)).split((6, 30), 1)
    found = []
    for recompute in (False, True):
        policy = CausalPolicy(hf_models.network("llama"), PAD, torch.bfloat16, recompute=recompute)
        norms = ScoreNorms(policy)
        for _ in range(2):  # that layers are replayed is known from the first batch on
            with norms.record():
                scores = policy.score_rows(Responses(prompts, responses, torch.ones(4, 30, dtype=torch.bool)))
            norms.squared_norms(scores.logp)
        found.append(norms.layers())
    assert all(value.dtype == torch.float32 for value in found[1].values())
    torch.testing.assert_close(found[1], found[0], rtol=1e-6, atol=0)


def test_caches_hold_what_is_computed_in() -> None:
    policy = hf_models.policy("llama", dtype=torch.bfloat16)
    decoding = policy.decoding(torch.tensor([[PAD, 5, 6], [7, 8, 9]]), 4, 5)
    assert {cache.dtype for cache in decoding.caches} == {torch.bfloat16}
    assert hf_models.policy("llama").decoding(torch.tensor([[5, 6]]), 2, 5).caches[0].dtype == torch.float32


class Casts(TorchDispatchMode):
    """Counts conversions of tensors of one size to bfloat16."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.count = size, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten._to_copy.default and kwargs.get("dtype") == torch.bfloat16:
            self.count += args[0].numel() == self.size
        return func(*args, **kwargs)


@pytest.mark.parametrize("copied", [False, True])
def test_a_sampler_converts_its_weights_once_per_batch(copied: bool) -> None:
    sampler = PolicyEngine(hf_models.policy("llama", dtype=torch.bfloat16), copied)
    with Casts(32 * 48) as casts:
        sampler.generate(PROMPTS, DRAWS, EOS)
    assert casts.count == 2 * 3  # layers, and projections of their size


def test_bfloat16_computes_in_it_and_trains_float32() -> None:
    policy = hf_models.policy("llama", dtype=torch.bfloat16)
    rollout = policy.sample(Draw(PROMPTS, DRAWS, EOS))
    low = policy.score(Responses(PROMPTS, rollout.responses, rollout.mask)).logp
    high = hf_models.policy("llama").score(Responses(PROMPTS, rollout.responses, rollout.mask)).logp
    assert 1e-4 < (low - high).abs().max() < 1.0
    assert (low - rollout.logp).abs().max() < 0.5
    low.sum().backward()
    assert {p.dtype for p in policy.parameters()} == {torch.float32}
    assert all(torch.isfinite(p.grad).all() for p in policy.parameters() if p.grad is not None)


def test_a_model_that_changes_its_logits_after_the_head_is_refused() -> None:
    with pytest.raises(UsageError, match=r"GraniteForCausalLM .*\(logits_scaling=4.0\).* config.json"):
        hf_models.policy("granite", logits_scaling=4.0)
    hf_models.policy("granite", logits_scaling=1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_cap_is_found_however_small_the_logits_of_a_fresh_model_are(dtype: torch.dtype) -> None:
    small = {"head_dim": 8, "initializer_range": 1e-3}
    with pytest.raises(UsageError, match=r"Gemma2ForCausalLM .*\(final_logit_softcapping=30.0\)"):
        hf_models.policy("gemma2", dtype=dtype, **small)
    hf_models.policy("gemma2", dtype=dtype, final_logit_softcapping=None, **small)


def test_a_model_that_scales_what_its_head_reads_is_refused() -> None:
    network = hf_models.network("llama")
    network.lm_head.register_forward_pre_hook(lambda _, args: (1.001 * args[0],))
    with pytest.raises(UsageError, match="LlamaForCausalLM scales or caps its logits, which is not supported"):
        CausalPolicy(network, PAD)


def test_truncated_sampling_reports_what_it_drew_from() -> None:
    policy = hf_models.policy("llama", "torch(top_k=3,truncate=allow)")
    rollout = policy.sample(Draw(PROMPTS, DRAWS, None))
    full = policy.score(Responses(PROMPTS, rollout.responses, rollout.mask)).logp
    assert (rollout.logp > full).all()
    assert rollout.entropy.max() < torch.tensor(3.0).log() + 1e-6


def test_a_replica_copies_only_what_is_trained() -> None:
    """The reference policy of a method costs an adapted model its adapters, not the whole model again."""
    subject = hf_models.policy("llama")
    add_adapters(subject.network, 2)
    twin = subject.replica()
    assert not any(parameter.requires_grad for parameter in twin.parameters())
    copies = dict(twin.named_parameters())
    for name, parameter in subject.named_parameters():
        assert (copies[name].data_ptr() == parameter.data_ptr()) == ("lora_" not in name), name
        assert torch.equal(copies[name], parameter)


def test_replayed_survivors_make_the_ratio_one() -> None:
    policy, cut = hf_models.policy("llama"), Truncation(top_p=0.8, replay=True)
    rollout = policy.sample(Draw(PROMPTS, DRAWS, EOS, truncation=cut))
    plain = policy.score(Responses(PROMPTS, rollout.responses, rollout.mask)).logp
    replayed = policy.score(Responses(PROMPTS, rollout.responses, rollout.mask, rollout.kept)).logp
    assert (plain - rollout.logp)[rollout.mask].exp().mean() < 0.95
    torch.testing.assert_close(replayed, rollout.logp, rtol=0, atol=1e-5)
