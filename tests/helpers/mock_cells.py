"""Small cells trained on a device of choice, as functions that another process can be sent."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from chance import Chance

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.policies import draw
from vcpo_bench.bench.replay.probe import ProbeSpec, run_probe
from vcpo_bench.bench.replay.recorded_cell import read_cell
from vcpo_bench.bench.tasks.text.arithmetic import Arithmetic
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.methods import parse_method

Result = dict[str, np.ndarray]
"""What training came to: trained weights by name, and `grad_norm`, the gradient norm of every update."""


def train(config: dict[str, Any], start: Path | None = None, device: str = "cpu", interrupted: bool = False) -> Result:
    """Train a cell to its end; interrupted: saved half way, and resumed by a new trainer.

    `chunk_bytes` in the configuration is that of a language model's head.
    """
    torch.set_num_threads(1)
    chunk_bytes = (config := dict(config)).pop("chunk_bytes", None)
    cell = CellConfig(**{"seed": 0, "prompts": 3, "responses": 4, "steps": 4, "eval_every": 2} | config)
    new = partial(_trainer, cell, start, device, chunk_bytes)
    trainer = new()
    assert trainer.policy.device == torch.device(device)
    while not trainer.status:
        trainer.advance()
        if interrupted and trainer.step == cell.steps // 2:
            trainer = _again(trainer, new)
    trainer.close()
    found = {name: tensor.cpu().numpy() for name, tensor in trainer.policy.trained_state().items()}
    return found | {"grad_norm": np.array(trainer.recorder.tables["steps.parquet"].columns["grad_norm"])}


def train_on_mock(config: dict[str, Any], start: Path | None = None, interrupted: bool = False) -> Result:
    """The same on the mock device; for a process of its own.

    Sampling looks at every token there, as on a CPU: ended rows that stay in a product change the bits of the others.
    """
    import mock_gpu

    with mock_gpu.mocked(), patch.object(draw, "CHEAP", draw.CHEAP | {torch.device(mock_gpu.NAME).type}):
        return train(config, start, mock_gpu.NAME, interrupted)


def probe(folder: Path, model: Path, methods: tuple[str, ...], out: Path, device: str = "cpu") -> None:
    """Write what the probe finds after 4 updates of a recorded cell."""
    torch.set_num_threads(1)
    cell = replace(read_cell(folder, model=str(model)), device=device)
    run_probe(ProbeSpec(cell, [4], [parse_method(text) for text in methods], 8, 8), out, lambda _: None)


def probe_on_mock(folder: Path, model: Path, methods: tuple[str, ...], out: Path) -> None:
    """The same on the mock device; for a process of its own."""
    import mock_gpu

    with mock_gpu.mocked():
        probe(folder, model, methods, out, mock_gpu.NAME)


def reward_chance() -> None:
    """Random language models are never right: reward something they do by chance."""
    Arithmetic.score = Chance.score  # type: ignore[method-assign]


def mixed() -> str:
    """The error of an operation on two devices."""
    import mock_gpu

    with mock_gpu.mocked():
        there = torch.ones(2, device=mock_gpu.NAME)
        try:
            there + torch.ones(2)
        except RuntimeError as error:
            return str(error)
    return ""


def _trainer(cell: CellConfig, start: Path | None, device: str, chunk_bytes: int | None) -> Trainer:
    trainer = build_trainer(cell, start=start, device=device)
    if chunk_bytes:
        trainer.policy.chunked_head.vocabulary.chunk_bytes = chunk_bytes
    return trainer


def _again(trainer: Trainer, new: Callable[[], Trainer]) -> Trainer:
    with tempfile.TemporaryDirectory() as folder:
        trainer.save(Path(folder))
        trainer.close()
        again = new()
        again.load(Path(folder))
        return again
