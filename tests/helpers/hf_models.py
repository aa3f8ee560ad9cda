"""Tiny random language models for tests; importing it skips the file where the extra is not installed."""

from pathlib import Path
from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers", reason="runs in .ci/integrations hf")

from vcpo_bench.bench.cells.config import CellConfig  # noqa: E402
from vcpo_bench.bench.cells.grid import plan_grid  # noqa: E402
from vcpo_bench.bench.cells.grid_spec import GridSpec  # noqa: E402
from vcpo_bench.bench.cells.results_folder import ResultsFolder  # noqa: E402
from vcpo_bench.bench.policies.hf.create import character_tokenizer  # noqa: E402
from vcpo_bench.bench.policies.hf.policy import CausalPolicy  # noqa: E402
from vcpo_bench.bench.replay.recorded_cell import RecordedCell, read_cell  # noqa: E402
from vcpo_bench.bench.running.cell.run_cell import run_cell  # noqa: E402
from vcpo_bench.bench.samplers.catalog import SAMPLERS  # noqa: E402
from vcpo_bench.bench.training.build import build_trainer  # noqa: E402
from vcpo_bench.bench.training.trainer import Trainer  # noqa: E402
from vcpo_bench.records.settings import CellSettings  # noqa: E402

PAD, EOS, VOCABULARY = 0, 1, 99
TASK = "arithmetic(terms=2,largest=9)"


def network(kind: str, seed: int = 0, **changes: Any) -> Any:
    """A random model with the vocabulary of the character tokenizer."""
    shared = {"vocab_size": VOCABULARY, "pad_token_id": PAD, "eos_token_id": EOS, "bos_token_id": None}
    size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    torch.manual_seed(seed)
    if kind == "gpt2":
        settings = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128} | shared | changes
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(**settings)).eval()
    settings = size | {"num_key_value_heads": 2, "max_position_embeddings": 128, "initializer_range": 0.3} | shared
    config, model = {
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
        "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
        "gemma2": (transformers.Gemma2Config, transformers.Gemma2ForCausalLM),
        "granite": (transformers.GraniteConfig, transformers.GraniteForCausalLM),
    }[kind]
    return model(config(**(settings | changes))).eval()


def policy(kind: str, sampler: str = "torch", dtype: torch.dtype = torch.float32, **changes: Any) -> CausalPolicy:
    return CausalPolicy(network(kind, **changes), PAD, dtype, SAMPLERS.parse(sampler).sampling())


def save(folder: Path, kind: str = "llama", **changes: Any) -> Path:
    """A folder as users have them."""
    network(kind, **changes).save_pretrained(folder)
    character_tokenizer().save_pretrained(folder)
    return folder


def trainer(folder: Path, method: str = "clip", staleness: int = 0, **config: Any) -> Trainer:
    """A cell on a small task."""
    settings = {"task": TASK, "prompts": 3, "responses": 4, "steps": 4, "eval_every": 100, "lr": 1e-2} | config
    return build_trainer(
        CellConfig(method=method, staleness=staleness, seed=0, model="tiny@0", **settings), start=folder
    )


def recorded(
    folder: Path, out: Path, method: str, regime: str = "fifo", keep_every: int = 0, **model: Any
) -> RecordedCell:
    """A cell at lag 2 on the small task, run to its end of 6 updates and read again."""
    settings = CellSettings(steps=6, prompts=3, responses=4, **model)
    axes = ((method,), (2,), (0,), (TASK,), (1e-2,), (regime,))
    spec = GridSpec(*axes, settings=settings, controls=False, model=str(folder))
    (cell,) = plan_grid(spec)
    results = ResultsFolder(out)
    assert run_cell(cell, results.cells, keep_every, lambda *_: None) == "completed"
    return read_cell(results.cells / cell.key, model=str(folder))
