"""A GGUF file becomes an ordinary folder whose weights are bfloat16 numbers, and a damaged one a single line."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hf_models import transformers  # noqa: F401 - skips the file where the extra is not installed

gguf = pytest.importorskip("gguf", reason="runs in .ci/integrations hf")

from vcpo_bench.bench.cells.model_source import model_folder  # noqa: E402
from vcpo_bench.bench.policies.hf.loading import read_network, read_tokenizer  # noqa: E402
from vcpo_bench.errors import UsageError  # noqa: E402

WIDTH, HIDDEN, LAYERS, HEADS = 32, 64, 2, 2
TOKENS = ["<|im_start|>", "<|im_end|>", *"0123456789+=abcdefghijklmnopqrstuvwxyz", "ab"]


def write(path: Path) -> dict[str, np.ndarray]:
    """A small random Llama in Q8_0; returns its matrices as they are after quantization."""
    rng = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.NORMAL] * (len(TOKENS) - 2))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    shapes = {"token_embd": (len(TOKENS), WIDTH), "output": (len(TOKENS), WIDTH)}
    for layer in range(LAYERS):
        shapes |= {f"blk.{layer}.attn_{name}": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
        shapes |= {f"blk.{layer}.ffn_{name}": (HIDDEN, WIDTH) for name in ("gate", "up")}
        shapes |= {f"blk.{layer}.ffn_down": (WIDTH, HIDDEN)}
    matrices = {}
    for name, shape in shapes.items():
        blocks = gguf.quantize(rng.normal(size=shape).astype(np.float32), gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor(f"{name}.weight", blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        matrices[name] = gguf.dequantize(blocks, gguf.GGMLQuantizationType.Q8_0)
    norms = ["output_norm", *(f"blk.{layer}.{name}_norm" for layer in range(LAYERS) for name in ("attn", "ffn"))]
    for name in norms:
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return matrices


def test_weights_are_rounded_to_bfloat16_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    matrices = write(tmp_path / "small.gguf")
    folder = model_folder(str(tmp_path / "small.gguf"))
    network = read_network(folder)
    for weight in network.parameters():
        assert weight.dtype == torch.float32
        assert torch.equal(weight, weight.bfloat16().float())
    expected = torch.from_numpy(matrices["blk.1.ffn_down"]).bfloat16().float()
    assert torch.equal(network.model.layers[1].mlp.down_proj.weight, expected)
    assert not torch.equal(expected, torch.from_numpy(matrices["blk.1.ffn_down"]))
    assert read_tokenizer(folder).eos_token == "<|im_end|>"


def test_a_file_that_is_no_gguf_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "broken.gguf").write_bytes(b"GGUF and nothing else")
    with pytest.raises(UsageError, match=r"broken\.gguf: cannot be read as a GGUF model") as refused:
        model_folder(str(tmp_path / "broken.gguf"))
    assert "\n" not in str(refused.value)
