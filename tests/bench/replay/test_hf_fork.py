"""Forks of runs that trained a language model: the control is the run itself, others share its past and its model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from replays import quiet, run_forks, tables
from safetensors.torch import load_file

from vcpo_bench.bench.replay.fork import ForkSpec, plan_forks, write_origins
from vcpo_bench.bench.replay.probe import ProbeSpec, run_probe
from vcpo_bench.bench.replay.recorded_cell import RecordedCell, read_cell
from vcpo_bench.bench.replay.replay import Replay
from vcpo_bench.methods import parse_method

AT, STEPS = 3, 6
KEEP_EVERY = 2
Recorded = Callable[..., RecordedCell]


def reward(text: str) -> float:
    return (sum(map(ord, text)) % 5) / 4


def last_state(folder: Path) -> dict[str, torch.Tensor]:
    """Weights, optimizer and queue at the end."""
    return load_file(folder / "checkpoints" / f"{STEPS:08d}" / "state.safetensors")


@pytest.mark.parametrize(
    ("method", "regime", "more"),
    [
        ("vcpo", "fifo", {}),
        ("clip+ess(base=measured)", "inflight", {"micro_tokens": 60}),
        ("tis", "async(clock=virtual)", {"sampler": "torch(slots=8)"}),
        ("clip", "fifo(publish_every=2,engine_noise=bf16)", {"lora": 2, "checkpointing": True}),
    ],
)
def test_the_control_is_the_run_itself_bit_for_bit_and_others_differ_only_after_the_fork(
    tmp_path: Path, recorded_model: Recorded, method: str, regime: str, more: dict[str, Any]
) -> None:
    parent = recorded_model(method, regime, **more)
    forks = run_forks(ForkSpec([parent], AT, ["vespo"], tmp_path / "fork"), STEPS)
    control, other = tables(forks[parent.config.method]), tables(forks["vespo"])
    assert repr(control) == repr(tables(parent.folder))
    for name, column in other["steps.parquet"].items():
        assert repr(column[:AT]) == repr(control["steps.parquet"][name][:AT]), name
    assert repr(other["steps.parquet"]["grad_norm"][AT:]) != repr(control["steps.parquet"]["grad_norm"][AT:])
    recorded_state, control_state, other_state = map(
        last_state, (parent.folder, forks[parent.config.method], forks["vespo"])
    )
    assert recorded_state.keys() == control_state.keys()
    assert all(torch.equal(control_state[name], tensor) for name, tensor in recorded_state.items())
    weights = [name for name in other_state if name.startswith("policy/")]
    assert not all(torch.equal(other_state[name], recorded_state[name]) for name in weights)


def test_a_method_that_needs_the_start_policy_gets_the_model_itself(tmp_path: Path, recorded_model: Recorded) -> None:
    forks = run_forks(ForkSpec([recorded_model("clip")], AT, ["clip+kl(anchor=reference)"], tmp_path / "fork"))
    steps = {method: tables(folder)["steps.parquet"] for method, folder in forks.items()}
    (other,) = [method for method in steps if "kl" in method]
    assert steps[other]["nonfinite"] == [""] * STEPS
    assert steps[other]["grad_norm"][AT] != steps["clip"]["grad_norm"][AT]


def test_adapters_alone_are_kept_in_the_state_that_forks_begin_from(tmp_path: Path, recorded_model: Recorded) -> None:
    spec = ForkSpec([recorded_model("clip", lora=2)], AT, ["vespo"], tmp_path / "fork")
    cells = plan_forks(spec)
    write_origins(spec, cells, False, quiet)
    assert cells[0].origin is not None
    kept = [name for name in load_file(cells[0].origin / "state.safetensors") if name.startswith("policy/")]
    assert kept
    assert all("lora_" in name for name in kept)


def test_a_replay_begins_at_the_nearest_checkpoint_and_keeps_trained_weights_only(recorded_model: Recorded) -> None:
    cell = recorded_model("clip", lora=2)
    replay = Replay(cell, 5)
    assert replay.began == 4
    replay.to(STEPS, keep=(STEPS,))
    assert replay.summary().endswith("2 updates replayed from the checkpoint at 4, bit-identical to the record")
    snapshot, state = replay.snapshots[STEPS], last_state(cell.folder)
    assert {f"policy/{name}" for name in snapshot} == {name for name in state if name.startswith("policy/")}
    assert all(torch.equal(state[f"policy/{name}"], tensor) for name, tensor in snapshot.items())


def test_a_fork_can_itself_be_probed_and_forked(tmp_path: Path, recorded_model: Recorded, model: Path) -> None:
    first = run_forks(ForkSpec([recorded_model()], AT, ["clip"], tmp_path / "first"))
    parent = read_cell(first["clip"], model=str(model))
    second = run_forks(ForkSpec([parent], AT + 1, ["tis"], tmp_path / "second"))
    assert repr(tables(second["clip"])) == repr(tables(first["clip"]))
    said: list[str] = []
    run_probe(ProbeSpec(parent, [AT + 2], [parse_method("clip")], 8, 8), tmp_path / "p.parquet", said.append)
    assert said == [f"{parent.key}: 2 updates replayed from the checkpoint at {AT}, bit-identical to the record"]
