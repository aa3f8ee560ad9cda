"""Score norms on the causal language models of Hugging Face (random weights), and opacus as a second oracle.

Runs in the environment that `.ci/integrations.d/norms.sh` builds; skipped where those packages are absent.
"""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from score_norms_oracle import Tiny, check, row_gradients, score, slow_norms
from torch import Tensor, nn

from vcpo_bench.bench.score_norms import ScoreNorms

transformers = pytest.importorskip("transformers", reason="runs in .ci/integrations norms")

COMMON: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {**COMMON, "num_key_value_heads": 2}
GPT2 = {
    "vocab_size": 50,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", GROUPED),
    "qwen2": ("Qwen2", GROUPED),
    "qwen3": ("Qwen3", {**GROUPED, "head_dim": 8}),
    "gemma": ("Gemma", {**GROUPED, "head_dim": 8}),
    "gemma2": ("Gemma2", {**GROUPED, "head_dim": 8}),
    "gemma3": ("Gemma3", {**GROUPED, "head_dim": 8}),
    "neox": ("GPTNeoX", COMMON),
    "gpt2": ("GPT2", GPT2),
}
GEMMAS = ("gemma", "gemma2", "gemma3")
EXPERTS = {**GROUPED, "moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}
LATENT = {"kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 8}
STATES = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}
ONE_BY_ONE: dict[str, tuple[str, dict[str, Any]]] = {
    "mixtral": ("Mixtral", {**GROUPED, "num_local_experts": 4}),
    "qwen2 moe": ("Qwen2Moe", {**EXPERTS, "shared_expert_intermediate_size": 16}),
    "qwen3 moe": ("Qwen3Moe", {**EXPERTS, "head_dim": 8}),
    "olmoe": ("Olmoe", {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2}),
    "deepseek v3": (
        "DeepseekV3",
        {**COMMON, **LATENT, "moe_intermediate_size": 16, "n_routed_experts": 4, "num_experts_per_tok": 2}
        | {"n_group": 2, "topk_group": 1, "first_k_dense_replace": 1, "n_shared_experts": 1},
    ),
    "gpt-oss": ("GptOss", {**GROUPED, "head_dim": 8, "num_local_experts": 4, "sliding_window": 8}),
    "llama4": ("Llama4", {**GROUPED, "head_dim": 8, "intermediate_size_mlp": 48, "num_local_experts": 2}),
    "mamba": ("Mamba", STATES),
    "mamba2": ("Mamba2", {**STATES, "num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 8}),
    "rwkv": ("Rwkv", {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "use_cache": False}),
    "recurrent gemma": (
        "RecurrentGemma",
        {**COMMON, "num_hidden_layers": 3, "lru_width": 32, "head_dim": 8, "attention_window_size": 8},
    ),
    "lfm2": ("Lfm2", {**GROUPED, "layer_types": ["conv", "full_attention"]}),
}


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    torch.manual_seed(0)


def configuration(family: str, **settings: Any) -> Any:
    text = f"{family}TextConfig"
    return getattr(transformers, text if hasattr(transformers, text) else f"{family}Config")(**settings)


def build(name: str, tied: bool = True, **options: Any) -> nn.Module:
    torch.manual_seed(0)
    family, arguments = MODELS[name]
    config = configuration(family, **arguments, tie_word_embeddings=tied, **options)
    head = "GPT2LMHeadModel" if name == "gpt2" else f"{family}ForCausalLM"
    model: nn.Module = getattr(transformers, head)(config).eval()
    return model


def padded() -> tuple[Tensor, Tensor]:
    tokens = torch.randint(3, 50, (4, 11), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(tokens)
    mask[1, -4:], mask[2, -1:] = 0, 0
    return tokens, mask


def scorer(model: nn.Module) -> Callable[[], Tensor]:
    tokens, mask = padded()

    def compute() -> Tensor:
        logits = model(input_ids=tokens, attention_mask=mask).logits[:, :-1]
        logp = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]
        return logp * mask[:, 1:]

    return compute


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_causal_language_models(name: str, tied: bool) -> None:
    model = build(name, tied).double()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # every layer has a rule
        # Gemma's norms compute in float32 whatever the type of the model, in the loop as well
        check(model, scorer(model), rtol=1e-5 if name in GEMMAS else 1e-9)


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_models_that_take_one_backward_pass_per_trajectory(name: str) -> None:
    """Compared with trajectories scored alone, too: in a batch, experts and states must keep them apart."""
    family, arguments = ONE_BY_ONE[name]
    model = getattr(transformers, f"{family}ForCausalLM")(configuration(family, **arguments)).eval()
    with pytest.warns(UserWarning, match="one backward pass per trajectory, 4 for this batch") as seen:
        norms = check(model, scorer(model), rtol=1e-4)
    assert sum("backward pass" in str(warning.message) for warning in seen) == 1
    tokens, mask = padded()
    for row, squared in enumerate(sum(norms.layers().values())):
        own = tokens[row, mask[row] > 0]
        logp = model(input_ids=own[None]).logits[0, :-1].log_softmax(-1).gather(-1, own[1:, None])
        torch.testing.assert_close(squared, slow_norms(model, logp.sum()[None])[0], rtol=1e-3, atol=0)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_float32(name: str) -> None:
    model = build(name)
    norms, compute = ScoreNorms(model), scorer(model)
    with norms.record():
        logp = compute()
    torch.testing.assert_close(norms.squared_norms(logp), slow_norms(model, compute().sum(1)), rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2", *GEMMAS])
def test_checkpointed(name: str) -> None:
    model = build(name).double()
    expected = slow_norms(model, scorer(model)().sum(1))
    model.train()  # checkpointing is off in evaluation; there is no dropout to change the numbers
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    norms, compute = ScoreNorms(model), scorer(model)
    for _ in range(2):
        with norms.record():
            logp = compute()
        replayed = sum(use.inputs is None for use in norms._tape.uses)
        found = norms.squared_norms(logp, retain_graph=True)
        torch.testing.assert_close(found, expected, rtol=1e-5 if name in GEMMAS else 1e-9, atol=0)
    assert replayed > 8
    logp.sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    compute().sum().backward()
    for gradient, parameter in zip(gradients, model.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad)


@pytest.mark.parametrize("name", ["llama", "qwen2"])
def test_bfloat16_autocast(name: str) -> None:
    model = build(name)
    norms, compute = ScoreNorms(model), scorer(model)

    def low() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return compute()

    with norms.record():
        logp = low()
    squared = norms.squared_norms(logp)
    torch.testing.assert_close(squared, slow_norms(model, low().sum(1)), rtol=1e-2, atol=0)
    torch.testing.assert_close(squared, slow_norms(model, compute().sum(1)), rtol=5e-2, atol=0)


def test_packed_rows() -> None:
    model = build("llama", attn_implementation="sdpa").double()
    segments = torch.tensor([[0] * 4 + [1] * 5 + [2] * 3, [3] * 7 + [4] * 4 + [-1]])
    places = torch.cat([torch.arange(n) for n in (4, 5, 3, 7, 4, 1)]).view(2, 12)
    tokens = torch.randint(3, 50, (2, 12))
    own = (segments[:, None, :, None] == segments[:, None, None, :]).tril()
    bias = torch.zeros(own.shape, dtype=torch.float64).masked_fill(~own, torch.finfo(torch.float64).min)
    counted = (segments[:, 1:] == segments[:, :-1]) & (segments[:, 1:] >= 0)
    norms = ScoreNorms(model)
    with norms.record():
        logits = model(input_ids=tokens, position_ids=places, attention_mask=bias).logits[:, :-1]
        logp = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]
    totals = torch.stack([(logp * counted)[segments[:, 1:] == number].sum() for number in range(5)])
    rows = row_gradients(model, totals)
    expected = torch.stack([torch.stack([g.square().sum() for g in row.values()]).sum() for row in rows])
    found = norms.squared_norms(logp, counted, segments=[segments, segments[:, 1:]])
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=0)


def test_a_head_used_without_its_module_takes_one_backward_pass_each() -> None:
    model = build("llama", tied=False)
    norms, (tokens, _) = ScoreNorms(model), padded()
    with norms.record():
        hidden = model.model(input_ids=tokens).last_hidden_state
        logp = -nn.functional.cross_entropy(
            nn.functional.linear(hidden, model.lm_head.weight).flatten(0, 1), tokens.flatten(), reduction="none"
        ).view_as(tokens)
    expected = slow_norms(model, logp.sum(1))
    with pytest.warns(UserWarning, match=r"'lm_head.weight' is used by .* outside the layer .* ChunkedHead"):
        torch.testing.assert_close(norms.squared_norms(logp), expected, rtol=1e-5, atol=0)


@pytest.mark.filterwarnings("ignore")
def test_opacus_agrees() -> None:
    opacus = pytest.importorskip("opacus", reason="runs in .ci/integrations norms")
    tokens = torch.randint(11, (6, 12))
    model = Tiny().double()
    norms = ScoreNorms(model)
    with norms.record():
        logp = score(model, tokens, 7)
    found = norms.squared_norms(logp)
    norms.close()
    wrapped = opacus.GradSampleModule(model, loss_reduction="sum")
    score(wrapped, tokens, 7).sum().backward()
    expected = sum(parameter.grad_sample.flatten(1).square().sum(1) for parameter in wrapped.parameters())
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=0)
