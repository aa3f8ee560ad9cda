"""Files that wandb and tensorboard really write, read by `diagnose`'s readers."""

import shutil
import struct
import sys
from pathlib import Path

import pytest

from vcpo_bench.analysis.logs import read_run


def test_an_offline_wandb_run_and_a_truncated_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb", exc_type=ImportError, reason="runs in .ci/integrations evals")
    if not Path(sys.executable).with_name("wandb").exists() and shutil.which("wandb") is None:
        pytest.skip("the program wandb is not on the path; .ci/integrations evals has it")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(project="p", dir=str(tmp_path))
    for step in range(200):
        reward = float("nan") if step == 7 else step / 200
        wandb.log({"training/global_step": step, "critic/score/mean": reward, "actor/pg_loss": 0.1})
    run.finish()
    (file,) = tmp_path.rglob("*.wandb")
    whole = read_run(file)
    assert whole.framework == "verl"
    assert whole.series["reward"].steps.tolist() == list(range(200))
    assert whole.series["reward"].finite[0].size == 199
    cut = tmp_path / "cut" / file.name
    cut.parent.mkdir()
    cut.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    part = read_run(cut)
    assert 0 < part.series["reward"].steps.size < 200
    assert any("rows were recovered" in note for note in part.notes)


def test_event_files_agree_with_tensorboards_own_reader(tmp_path: Path) -> None:
    accumulators = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="runs in .ci/integrations evals"
    )
    events = pytest.importorskip("tensorboard.compat.proto.event_pb2", reason="runs in .ci/integrations evals")
    writers = pytest.importorskip(
        "tensorboard.summary.writer.event_file_writer", reason="runs in .ci/integrations evals"
    )
    writer = writers.EventFileWriter(str(tmp_path))
    for step in range(300):
        event = events.Event(step=step, wall_time=1.0)
        event.summary.value.add(tag="train/reward", simple_value=step / 7)
        event.summary.value.add(tag="train/completions/mean_length").tensor.CopyFrom(_tensor(step / 3))
        writer.add_event(event)
    writer.close()
    theirs = accumulators.EventAccumulator(str(tmp_path), size_guidance={"scalars": 0, "tensors": 0})
    theirs.Reload()
    ours = read_run(tmp_path)
    assert ours.framework == "trl"
    assert ours.series["reward"].values.tolist() == [one.value for one in theirs.Scalars("train/reward")]
    lengths = [struct.unpack("<f", struct.pack("<f", step / 3))[0] for step in range(300)]
    assert ours.series["length_mean"].values.tolist() == lengths


def _tensor(value: float) -> object:
    tensors = pytest.importorskip("tensorboard.compat.proto.tensor_pb2", reason="runs in .ci/integrations evals")
    return tensors.TensorProto(dtype=1, tensor_content=struct.pack("<f", value))
