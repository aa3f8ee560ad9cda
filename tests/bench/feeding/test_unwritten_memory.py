"""Checkpoints of responses in flight: their bits do not depend on memory that nothing has written."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.checkpoint import TENSORS_FILE

pytestmark = pytest.mark.usefixtures("no_evaluations")

CONFIG = CellConfig(
    method="clip", task="walk-eos", regime="inflight", staleness=3, prompts=2, responses=4, steps=6, seed=0
)


def state(folder: Path, monkeypatch: pytest.MonkeyPatch, fill: float) -> bytes:
    """The tensors of a checkpoint after 2 updates; whatever memory is not written holds `fill`."""
    real = torch.empty

    def filled(*arguments: object, **options: object) -> Tensor:
        found = real(*arguments, **options)
        return found.fill_(fill) if found.is_floating_point() else found

    with monkeypatch.context() as patch:
        patch.setattr(torch, "empty", filled)
        trainer = build_trainer(CONFIG)
        trainer.advance()
        trainer.advance()
    folder.mkdir()
    trainer.save(folder)
    return (folder / TENSORS_FILE).read_bytes()


def test_a_checkpoint_holds_no_memory_that_was_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = state(tmp_path / "a", monkeypatch, 0.0)
    assert first == state(tmp_path / "b", monkeypatch, 12345.0)
    tensors = load_file(tmp_path / "b" / TENSORS_FILE)
    caches = [name for name in tensors if "cache" in name]
    assert caches, "nothing was in flight: this tests nothing"
    assert not any(bool((tensor == 12345.0).any()) for tensor in tensors.values() if tensor.is_floating_point())


def test_a_run_resumed_there_is_bit_identical(tmp_path: Path) -> None:
    through = build_trainer(CONFIG)
    for _ in range(2):
        through.advance()
    through.save(tmp_path)
    again = build_trainer(CONFIG)
    again.load(tmp_path)
    while not through.status:
        assert repr(through.advance()) == repr(again.advance())
    for ours, theirs in zip(through.policy.parameters(), again.policy.parameters(), strict=True):
        assert torch.equal(ours, theirs)
