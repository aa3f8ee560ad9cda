"""Stage 6: what `--dry-run` says of memory and time, against cells of that size that train here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from kit import Result, Setup, peak_memory

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.model_source import model_identity
from vcpo_bench.bench.machine.gpu_estimate import GIB, GPUS, Gpu, Workload, memory, update_time
from vcpo_bench.bench.machine.model_shapes import ModelShape, model_shape
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer

WAYS: dict[str, dict[str, Any]] = {
    "recomputed": {"checkpointing": True, "micro_tokens": 16384},
    "whole": {"micro_tokens": 8192},
    "lora": {"lora": 64, "micro_tokens": 8192},
}
"""How the learner holds the model; the first as in the preset `vcpo-gsm8k`."""
_PARTS = {"sampling": ("seconds_sample",), "learning": ("seconds_score", "seconds_update")}
_MARK = "config.json"


def measure(setup: Setup, way: str) -> Result:
    """Peak memory and seconds of an update, measured and estimated: Qwen2-1.5B with random weights, 64 x 256 tokens."""
    folder = setup.work / "estimate" / "model"
    if not (folder / _MARK).exists():
        _save(setup.pick("Qwen2-1.5B", ""), folder, setup.device)
    config = _cell(setup, way, folder)
    trainer = build_trainer(config, start=folder, device=setup.device)
    trainer.advance()  # with the evaluation at the start, which is no part of an update
    with peak_memory(setup.device) as gib:
        for _ in range(2):
            trainer.advance()
    trainer.close()
    reserved = torch.cuda.max_memory_reserved() / GIB if setup.device.startswith("cuda") else float("nan")
    return {"measured_gib": gib["peak"], "reserved_gib": reserved} | _compared(
        trainer, config, model_shape(str(folder)), setup.device
    )


def _compared(trainer: Trainer, config: CellConfig, shape: ModelShape, device: str) -> Result:
    """Measured and estimated seconds of the last update; the estimate has the prompts' real length."""
    columns = trainer.recorder.tables["steps.parquet"].columns
    work = Workload(
        prompts=config.prompts,
        responses=config.responses,
        response_tokens=config.max_response,
        prompt_tokens=trainer.task.prompt_length,
        dtype=config.dtype,
        lora=config.lora,
        checkpointing=config.checkpointing,
        micro_tokens=config.micro_tokens,
    )
    need, gpu = memory(shape, work), _gpu(device)
    found: Result = {
        "estimated_gib": need.peak / GIB,
        "parts_gib": {k: v / GIB for k, v in need._asdict().items() if v},
    }
    found |= {"parameters": shape.parameters, "tokens": float(columns["length_mean"][-1]), "as": gpu.name}
    for part, names in _PARTS.items():
        found[f"measured_{part}"] = sum(float(columns[name][-1]) for name in names)
        found[f"estimated_{part}"] = getattr(update_time(shape, work, gpu), part)
    return found


def _cell(setup: Setup, way: str, folder: Path) -> CellConfig:
    size = setup.pick(
        {"prompts": 8, "responses": 8, "max_response": 256}, {"prompts": 2, "responses": 2, "max_response": 8}
    )
    return CellConfig(
        method="vcpo",
        staleness=1,
        seed=0,
        steps=3,
        eval_every=3,
        task=text_task("arithmetic").canonical,
        model=model_identity(str(folder)),
        dtype=setup.pick("bfloat16", "float32"),
        **size,
        **setup.pick(WAYS[way], WAYS[way] | {"micro_tokens": 64}),
    )


def _gpu(device: str) -> Gpu:
    """The row of the estimate that this GPU is; the H100's where there is none, and on a CPU."""
    name = torch.cuda.get_device_properties(0).name if device.startswith("cuda") else ""
    known = [gpu for gpu in GPUS if gpu.name.partition("-")[0] in name]
    return known[0] if known else GPUS[2]


def _save(name: str, folder: Path, device: str) -> None:
    """Random weights of a known shape; nearly no response ends early, since one id of 151,936 ends it."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from vcpo_bench.bench.policies.hf.create import character_tokenizer

    shape = model_shape(name) if name else ModelShape(2, 64, 128, 4, 2, 16, 4096, True)
    config = Qwen2Config(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=2048,
        tie_word_embeddings=shape.tied,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=1,
    )
    torch.manual_seed(0)
    with torch.device(device if device.startswith("cuda") else "cpu"):  # the mock device cannot be saved
        network = Qwen2ForCausalLM(config)
    character_tokenizer().save_pretrained(folder)
    network.bfloat16().save_pretrained(folder)
