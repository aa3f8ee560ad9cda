"""Sizes against published parameter counts; memory and time against arithmetic done by hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from vcpo_bench.bench.machine.gpu_estimate import (
    GIB,
    GPUS,
    Workload,
    describe,
    fits,
    memory,
    trained_parameters,
    update_time,
)
from vcpo_bench.bench.machine.model_shapes import KNOWN, ModelShape, model_shape, read_shape
from vcpo_bench.errors import UsageError

TINY = ModelShape(layers=2, hidden=8, intermediate=16, heads=2, kv_heads=1, head=4, vocab=10, tied=False)
WORK = Workload(prompts=2, responses=3, response_tokens=5, prompt_tokens=3)
H100 = next(gpu for gpu in GPUS if gpu.name == "H100-80")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [  # as counted from the released weights
        ("Qwen2-1.5B", 1_543_714_304),
        ("Qwen2.5-0.5B", 494_032_768),
        ("Qwen2.5-7B", 7_615_616_512),
        ("Qwen2.5-14B", 14_770_033_664),
        ("Qwen2.5-32B", 32_763_876_352),
        ("Qwen3-8B-Base", 8_190_735_360),
        ("Qwen3-30B-A3B-Base", 30_532_122_624),
        ("smollm2", 134_515_008),
        ("Llama-3.2-3B-Instruct", 3_212_749_824),
        ("Llama-3.1-8B-Instruct", 8_030_261_248),
    ],
)
def test_known_models_have_their_published_number_of_parameters(name: str, parameters: int) -> None:
    assert KNOWN[name].parameters == parameters
    assert model_shape(f"Organization/{name}") == KNOWN[name]


def test_only_the_active_experts_count_as_active() -> None:
    shape = KNOWN["Qwen3-30B-A3B-Base"]
    assert 3.0e9 < shape.active < 3.4e9
    assert KNOWN["Qwen2.5-7B"].active == KNOWN["Qwen2.5-7B"].parameters - 152064 * 3584  # the embedding is looked up


def test_parameters_by_hand() -> None:
    attention = 8 * 8 + 2 * 8 * 4 + 8 * 8
    layer = attention + 3 * 8 * 16 + 2 * 8
    assert TINY.parameters == 2 * 10 * 8 + 2 * layer + 8
    assert replace(TINY, tied=True).parameters == TINY.parameters - 80
    assert replace(TINY, bias=3).parameters == TINY.parameters + 2 * (8 + 4 + 4)
    assert replace(TINY, head_norms=True).parameters == TINY.parameters + 2 * 2 * 4
    adapters = (8 + 8) + 2 * (8 + 4) + (8 + 8) + 3 * (8 + 16)
    assert trained_parameters(TINY, lora=4) == 4 * 2 * adapters


QWEN2 = {
    "model_type": "qwen2",
    "num_hidden_layers": 28,
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
}


def test_a_configuration_is_read_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN2))
    assert model_shape(str(tmp_path)) == KNOWN["Qwen2-1.5B"]


def test_defaults_of_a_configuration() -> None:
    plain = {key: QWEN2[key] for key in QWEN2 if key not in ("num_key_value_heads", "tie_word_embeddings")}
    shape = read_shape(plain | {"model_type": "llama", "head_dim": 64}, "x")
    assert (shape.kv_heads, shape.head, shape.tied, shape.bias) == (12, 64, False, 0)
    assert read_shape(QWEN2 | {"model_type": "llama", "attention_bias": True}, "x").bias == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"model_type": "gpt2"}', "no estimate for model_type 'gpt2'; supported: llama"),
        ('{"model_type": "llama"}', "lacks 'num_attention_heads'"),
        ("{", "cannot be read"),
    ],
)
def test_an_unusable_configuration_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(UsageError, match=r"\A[^\n]*\Z") as error:
        model_shape(str(tmp_path))
    assert message in str(error.value)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"size unknown; give a folder .* Qwen2-1\.5B"):
        model_shape("someone/model")


def test_memory_by_hand_in_float32() -> None:
    need = memory(TINY, WORK)
    n = TINY.parameters
    assert (need.weights, need.gradients, need.optimizer) == (4 * n, 4 * n, 8 * n)
    rows, length = 6, 8
    assert need.activations == rows * length * 2 * (24 * 8 + (4 * 8 + 4 * 16 + length) * 4)
    assert need.cache == 2 * rows * length * 2 * 4 * 4
    assert need.peak == 16 * n + max(need.activations + need.logits, need.cache)


def test_bfloat16_halves_activations_but_not_the_state() -> None:
    need = memory(TINY, replace(WORK, dtype="bfloat16"))
    n = TINY.parameters
    assert (need.weights, need.gradients, need.optimizer) == (6 * n, 4 * n, 8 * n)
    assert need.activations == 6 * 8 * 2 * (28 * 8 + (4 * 8 + 4 * 16 + 8) * 2)
    with_norms = memory(replace(TINY, head_norms=True), replace(WORK, dtype="bfloat16"))
    assert with_norms.activations - need.activations == 6 * 8 * 2 * (2 * 8 + 2 * 4) * 4


def test_what_saves_memory_saves_it() -> None:
    full = memory(TINY, WORK)
    assert memory(TINY, replace(WORK, micro_tokens=16)).activations == full.activations * 16 / 48
    assert memory(TINY, replace(WORK, micro_tokens=1)).activations == full.activations * 8 / 48  # a row is never cut
    assert memory(TINY, replace(WORK, micro_tokens=10**9)) == full
    assert memory(TINY, replace(WORK, slots=2)).cache == full.cache / 3
    kept = memory(TINY, replace(WORK, checkpointing=True)).activations
    assert kept == full.activations / 2 + 4 * 48 * 2 * 8
    adapted = memory(TINY, replace(WORK, lora=1))
    assert adapted.gradients == 4 * trained_parameters(TINY, 1)
    assert adapted.weights == 4 * trained_parameters(TINY, 1) + 4 * TINY.parameters


def test_what_a_sampler_keeps_is_there_while_the_learner_works() -> None:
    work = replace(WORK, dtype="bfloat16", slots=256)
    need, kept = memory(TINY, work), memory(TINY, replace(work, keeps=True))
    assert kept.kept == 2 * TINY.parameters + 2 * 256 * 8 * 2 * 4 * 2
    assert kept.peak == need.peak - max(0, need.cache - need.activations - need.logits) + kept.kept


def test_time_by_hand() -> None:
    time = update_time(TINY, WORK, H100)
    operations = 2 * TINY.active + 2 * 8 * 2 * 8
    assert time.learning == pytest.approx(6 * 8 * operations * 4 / (0.35 * 67e12))
    assert time.sampling == pytest.approx(5 * 2 * 9e-4)  # a tiny model waits for Python
    assert time.total == time.sampling + time.learning
    again = update_time(TINY, replace(WORK, checkpointing=True), H100)
    assert again.learning == pytest.approx(time.learning * 5 / 4)
    assert update_time(TINY, replace(WORK, lora=1), H100).learning == pytest.approx(time.learning * 3 / 4)
    assert update_time(TINY, replace(WORK, slots=2), H100).sampling == pytest.approx(3 * time.sampling)


def test_sampling_a_large_model_is_bound_by_memory_then_by_arithmetic() -> None:
    shape = KNOWN["Qwen2.5-7B"]
    few, slow = Workload(1, 1, 100, dtype="bfloat16"), H100._replace(bandwidth=1e12)
    need = memory(shape, few)
    assert update_time(shape, few, slow).sampling == pytest.approx(100 * (need.weights + need.cache / 2) / (0.6 * 1e12))
    assert update_time(shape, few, H100).sampling == pytest.approx(100 * 28 * 9e-4), "Python, not memory, is the bound"
    many = Workload(10_000, 1, 1, prompt_tokens=1, dtype="bfloat16")
    assert update_time(shape, many, H100).sampling == pytest.approx(
        10_000 * (2 * shape.active + 4 * 28 * 3584) / (0.35 * 989e12)
    )


def test_the_papers_models_fit_where_their_state_allows() -> None:
    small = Workload(8, 8, 2048, dtype="bfloat16", checkpointing=True, micro_tokens=16384)
    large = Workload(32, 16, 2048, dtype="bfloat16", checkpointing=True, micro_tokens=16384, slots=128)
    assert fits(memory(KNOWN["Qwen2-1.5B"], small), H100)
    assert memory(KNOWN["Qwen2.5-7B"], large).peak > 18 * 7.6e9 > 0.92 * 141e9  # more than any single GPU here
    adapted = memory(KNOWN["Qwen2.5-7B"], replace(large, lora=64))
    assert fits(adapted, H100)


def test_the_description_names_every_gpu_and_what_to_try() -> None:
    lines = describe(KNOWN["Qwen2-1.5B"], Workload(8, 8, 2048, dtype="bfloat16", micro_tokens=8192), updates=500)
    text = "\n".join(lines)
    assert "checked in parts on one GPU" in text
    assert all(gpu.name in text for gpu in GPUS)
    assert "1.54 B parameters" in text
    assert "500 updates" in text
    whole = describe(KNOWN["Qwen2.5-7B"], Workload(32, 16, 2048), updates=1)
    assert "does NOT fit" in whole[-2]
    assert whole[-1].strip().startswith("fits nowhere: try --lora")
    peak = memory(KNOWN["Qwen2.5-7B"], Workload(32, 16, 2048)).peak / GIB
    assert f"{peak:.1f} at the peak" in whole[1]
