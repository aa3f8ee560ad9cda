"""Forks of runs that trained a language model: the control is the run itself, others share its past and its model."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hf_models
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner, Result

from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.replay.fork import ForkSpec, plan_forks, write_origins
from vcpo_bench.bench.replay.probe import ProbeSpec, run_probe
from vcpo_bench.bench.replay.replay import RecordedCell, Replay, read_cell
from vcpo_bench.bench.running import run_grid
from vcpo_bench.bench.running.pool import CellJob
from vcpo_bench.bench.running.run_cell import run_cell
from vcpo_bench.bench.tasks.text.arithmetic import Arithmetic
from vcpo_bench.cli import app
from vcpo_bench.methods import parse_method

AT, STEPS = 3, 6
Recorded = Callable[..., RecordedCell]


def quiet(*_: object) -> None:
    pass


@pytest.fixture(scope="module", autouse=True)
def _rewarded() -> Iterator[None]:
    """Random models are never right: reward something they do by chance."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Arithmetic, "score", lambda self, item, text: (sum(map(ord, text)) % 5) / 4)
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hf_models.save(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Recorded:
    """A run of its own for every configuration, made once; its checkpoints are those at 2, 4 and 6."""
    known: dict[str, RecordedCell] = {}

    def make(method: str = "vcpo", regime: str = "fifo", **more: Any) -> RecordedCell:
        key = repr((method, regime, more))
        if key not in known:
            known[key] = hf_models.recorded(model, tmp_path_factory.mktemp("run") / "r", method, regime, 2, **more)
        return known[key]

    return make


def tables(folder: Path) -> dict[str, dict[str, list]]:
    """Everything recorded but wall-clock times."""
    found = {}
    for path in sorted(folder.glob("*.parquet")):
        table = pq.read_table(path)
        found[path.name] = table.select([n for n in table.column_names if not n.startswith("seconds")]).to_pydict()
    return found


def last_state(folder: Path) -> dict[str, torch.Tensor]:
    """Weights, optimizer and queue at the end."""
    return load_file(folder / "checkpoints" / f"{STEPS:08d}" / "state.safetensors")


def run_all(spec: ForkSpec) -> dict[str, Path]:
    """The folders of the forks by method."""
    cells = plan_forks(spec)
    write_origins(spec, cells, False, quiet)
    folder = ResultsFolder(spec.out)
    assert [run_cell(cell, folder.cells, STEPS, quiet) for cell in cells] == ["completed"] * len(cells)
    return {cell.config.method: folder.cells / cell.key for cell in cells}


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
    tmp_path: Path, recorded: Recorded, method: str, regime: str, more: dict[str, Any]
) -> None:
    parent = recorded(method, regime, **more)
    forks = run_all(ForkSpec([parent], AT, ["vespo"], tmp_path / "fork"))
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


def test_a_method_that_needs_the_start_policy_gets_the_model_itself(tmp_path: Path, recorded: Recorded) -> None:
    forks = run_all(ForkSpec([recorded("clip")], AT, ["clip+kl(anchor=reference)"], tmp_path / "fork"))
    steps = {method: tables(folder)["steps.parquet"] for method, folder in forks.items()}
    (other,) = [method for method in steps if "kl" in method]
    assert steps[other]["nonfinite"] == [""] * STEPS
    assert steps[other]["grad_norm"][AT] != steps["clip"]["grad_norm"][AT]


def test_adapters_alone_are_kept_in_the_state_that_forks_begin_from(tmp_path: Path, recorded: Recorded) -> None:
    spec = ForkSpec([recorded("clip", lora=2)], AT, ["vespo"], tmp_path / "fork")
    cells = plan_forks(spec)
    write_origins(spec, cells, False, quiet)
    assert cells[0].origin is not None
    kept = [name for name in load_file(cells[0].origin / "state.safetensors") if name.startswith("policy/")]
    assert kept
    assert all("lora_" in name for name in kept)


def test_a_replay_begins_at_the_nearest_checkpoint_and_keeps_trained_weights_only(recorded: Recorded) -> None:
    cell = recorded("clip", lora=2)
    replay = Replay(cell, 5)
    assert replay.began == 4
    replay.to(STEPS, keep=(STEPS,))
    assert replay.summary().endswith("2 updates replayed from the checkpoint at 4, equal to the record bit for bit")
    snapshot, state = replay.snapshots[STEPS], last_state(cell.folder)
    assert {f"policy/{name}" for name in snapshot} == {name for name in state if name.startswith("policy/")}
    assert all(torch.equal(state[f"policy/{name}"], tensor) for name, tensor in snapshot.items())


def test_a_fork_can_itself_be_probed_and_forked(tmp_path: Path, recorded: Recorded, model: Path) -> None:
    first = run_all(ForkSpec([recorded()], AT, ["clip"], tmp_path / "first"))
    parent = read_cell(first["clip"], model=str(model))
    second = run_all(ForkSpec([parent], AT + 1, ["tis"], tmp_path / "second"))
    assert repr(tables(second["clip"])) == repr(tables(first["clip"]))
    said: list[str] = []
    run_probe(ProbeSpec(parent, [AT + 2], [parse_method("clip")], 8, 8), tmp_path / "p.parquet", said.append)
    assert said == [f"{parent.key}: 2 updates replayed from the checkpoint at {AT}, equal to the record bit for bit"]


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def in_process(jobs: list[CellJob], workers: int, observer: object) -> int:
    """In place of worker processes, where rewards are those of the library."""
    return sum(run_cell(job.cell, job.cells_folder, job.keep_every, quiet) == "error" for job in jobs)


def test_fork_on_the_command_line(
    tmp_path: Path, recorded: Recorded, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_grid, "run_jobs", in_process)
    parent = recorded()
    asked = (
        "fork",
        parent.folder,
        "--at",
        AT,
        "--methods",
        "vespo",
        "--out",
        tmp_path / "fork",
        "--model",
        model,
        "-q",
    )
    forked = call(*map(str, asked))
    assert forked.exit_code == 0, forked.output
    assert "1 updates replayed from the checkpoint at 2, equal to the record bit for bit" in forked.output
    assert "vcpo*" in forked.output
    cells = {path.name: path for path in (tmp_path / "fork" / "cells").iterdir()}
    assert len(cells) == 2
    (control,) = [path for name, path in cells.items() if "-vcpo-" in name]
    assert repr(tables(control)) == repr(tables(parent.folder))
    assert "replayed" not in call(*map(str, asked)).output
