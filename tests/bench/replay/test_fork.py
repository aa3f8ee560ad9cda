"""Forks: the control is the run it came from, other methods share its past, what cannot be forked is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from replays import quiet, run_forks, tables
from safetensors.torch import load_file

from vcpo_bench.analysis.comparison.scoreboard import scoreboard
from vcpo_bench.analysis.results import load
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.replay.fork import ForkSpec, plan_forks, write_origins
from vcpo_bench.bench.replay.recorded_cell import RecordedCell, read_cell
from vcpo_bench.bench.replay.replay import Replay
from vcpo_bench.bench.running.cell.run_cell import run_cell
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.errors import UsageError, VcpoBenchError
from vcpo_bench.files.checksums import write_sealed

pytestmark = pytest.mark.usefixtures("few_questions")

AT, STEPS, LAG = 5, 9, 2
SIZES = {"steps": STEPS, "prompts": 2, "responses": 4}
Recorded = Callable[..., RecordedCell]


def optimizer_of(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in trainer.learner.tensors().items() if name.startswith("optimizer/")}


@pytest.mark.parametrize(
    ("method", "regime"),
    [
        ("vcpo", "fifo"),
        ("clip+ess(base=measured)", "minibatch"),
        ("reinforce+gac", "inflight"),
        ("tis", "async(clock=virtual,sampler=1.5,slots=2)"),
    ],
)
def test_the_control_is_the_run_itself_bit_for_bit(
    tmp_path: Path, recorded: Recorded, method: str, regime: str
) -> None:
    parent = recorded(method, regime)
    forks = run_forks(ForkSpec([parent], AT, ["vespo"], tmp_path / "fork"))
    control, other = tables(forks[parent.config.method]), tables(forks["vespo"])
    assert repr(control) == repr(tables(parent.folder))
    for name, column in other["steps.parquet"].items():
        assert repr(column[:AT]) == repr(control["steps.parquet"][name][:AT])
    assert repr(other["steps.parquet"]["grad_norm"][AT:]) != repr(control["steps.parquet"]["grad_norm"][AT:])


def test_others_begin_from_weights_optimizer_and_queue_and_not_from_the_state_of_the_method(
    tmp_path: Path, recorded: Recorded
) -> None:
    parent = recorded("clip+ess(base=measured)", "minibatch")
    spec = ForkSpec([parent], AT, ["vespo"], tmp_path / "fork")
    cells = plan_forks(spec)
    write_origins(spec, cells, False, quiet)
    again = Replay(parent, AT)
    again.to(AT)
    assert again.trainer.learner.method_state
    for cell in cells:
        assert cell.origin is not None
        fork = build_trainer(cell.config)
        fork.load(cell.origin)
        assert fork.step == AT
        assert bool(fork.learner.method_state) == (cell.config.method == parent.config.method)
        ours, theirs = optimizer_of(fork), optimizer_of(again.trainer)
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)
        ours, theirs = fork.source.tensors(), again.trainer.source.tensors()
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)
        pairs = zip(fork.policy.parameters(), again.trainer.policy.parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)


def test_forks_are_ordinary_cells_that_say_where_they_come_from(tmp_path: Path, recorded: Recorded) -> None:
    parent = recorded()
    forks = run_forks(ForkSpec([parent], AT, ["clip"], tmp_path / "fork", steps=STEPS + 2))
    facts = {method: json.loads((folder / "cell.json").read_text()) for method, folder in forks.items()}
    assert {f["config"]["parent"] for f in facts.values()} == {parent.key}
    assert {(f["config"]["fork_step"], f["steps_done"]) for f in facts.values()} == {(AT, STEPS + 2)}
    assert {method: f["control"] for method, f in facts.items()} == {"clip": False, "vcpo": True}
    assert f"-fork{AT}-" in facts["clip"]["key"]
    results = load(tmp_path / "fork")
    assert not results.problems
    board = scoreboard(results)
    assert dict(zip(board["method"], board["control"], strict=True)) == {"clip": False, "vcpo": True}
    assert results.steps.groupby("key").size().tolist() == [STEPS + 2] * 2
    pooled = load([tmp_path / "fork", parent.results])
    said = [note.text for note in pooled.notes]
    assert f"Cells differ in fork_step (0, {AT}), which no table separates." in said


def test_a_folder_holds_forks_at_one_update(tmp_path: Path, recorded: Recorded) -> None:
    parent = recorded()
    run_forks(ForkSpec([parent], AT, ["clip"], tmp_path / "fork"))
    with pytest.raises(UsageError, match=f"holds forks at update {AT}, and tables would count one run twice"):
        run_forks(ForkSpec([parent], AT + 1, ["clip"], tmp_path / "fork"))


def test_forks_of_a_run_that_an_alarm_stopped_are_not_stopped(tmp_path: Path, recorded: Recorded) -> None:
    parent = recorded()
    stopped = replace(parent, config=replace(parent.config, stop="alarm"), updates=AT)
    planned = plan_forks(ForkSpec([stopped], AT, ["clip"], tmp_path / "fork"))
    assert {(cell.config.method, cell.config.stop, cell.config.steps) for cell in planned} == {
        ("clip", "", STEPS),
        ("vcpo", "", STEPS),
    }


def test_a_fork_interrupted_goes_on_and_a_damaged_checkpoint_falls_back_to_the_fork(
    tmp_path: Path, recorded: Recorded
) -> None:
    spec = ForkSpec([recorded()], AT, ["clip"], tmp_path / "fork")
    cells = plan_forks(spec)
    write_origins(spec, cells, False, quiet)
    (fork,) = [cell for cell in cells if not cell.control]
    folders = {}
    for name in ("through", "resumed", "damaged"):
        folders[name] = ResultsFolder(tmp_path / name).cells
        if name != "through":
            interrupt(fork, folders[name], damaged=name == "damaged")
        assert run_cell(fork, folders[name], 0, quiet) == "completed"
    found = {name: repr(tables(folder / fork.key)) for name, folder in folders.items()}
    assert found["through"] == found["resumed"] == found["damaged"]


def interrupt(cell: PlannedCell, folder: Path, damaged: bool) -> None:
    """Leave what a kill two updates after the fork leaves."""
    trainer = build_trainer(cell.config)
    assert cell.origin is not None
    trainer.load(cell.origin)
    trainer.advance()
    trainer.advance()
    checkpoint = folder / f"{cell.key}.partial" / f"checkpoint-{trainer.step:08d}"
    checkpoint.mkdir(parents=True)
    trainer.save(checkpoint)
    if damaged:
        (checkpoint / "state.safetensors").write_bytes(b"not weights")


def test_a_fork_can_itself_be_replayed_and_forked_but_not_before_it_began(tmp_path: Path, recorded: Recorded) -> None:
    first = run_forks(ForkSpec([recorded()], AT, ["clip"], tmp_path / "first"))
    parent = read_cell(first["clip"])
    replay = Replay(parent, AT + 1)
    replay.to(AT + 2)
    assert replay.began == AT
    assert replay.divergence() is None
    second = run_forks(ForkSpec([parent], AT + 2, ["tis"], tmp_path / "second"))
    assert repr(tables(second["clip"])) == repr(tables(first["clip"]))
    with pytest.raises(UsageError, match=r"--at 3: .*was forked at 5"):
        plan_forks(ForkSpec([parent], 3, ["tis"], tmp_path / "third"))


def test_a_replay_begins_at_the_nearest_checkpoint_that_can_be_read(recorded: Recorded) -> None:
    cell = recorded("gspo", keep_every=2)
    kept = cell.folder / "checkpoints"
    assert sorted(int(path.name) for path in kept.iterdir()) == [2, 4, 6, 8]
    replay = Replay(cell, 7)
    assert replay.began == 6
    replay.to(8, keep=(7,))
    weights = load_file(kept / "00000008" / "state.safetensors")
    assert all(torch.equal(weights[f"policy/{k}"], v) for k, v in replay.trainer.policy.state_dict().items())
    assert set(replay.snapshots) == {7}
    assert not torch.equal(replay.snapshots[7]["head.weight"], replay.trainer.policy.head.weight)
    assert replay.summary() == f"{cell.key}: 2 updates replayed from the checkpoint at 6, bit-identical to the record"
    (kept / "00000006" / "state.safetensors").write_bytes(b"")
    assert Replay(cell, 7).began == 4


def test_a_replay_that_computes_other_bits_says_from_where(tmp_path: Path, recorded: Recorded) -> None:
    cell = recorded()
    replay = Replay(cell, 0)
    replay.to(3)
    assert replay.divergence() is None
    replay.trainer.recorder.tables["steps.parquet"].columns["grad_norm"][2] += 1e-12
    assert replay.divergence() == 2
    assert "warning: from update 2 on" in replay.summary()


@pytest.mark.parametrize(
    ("at", "methods", "more", "said"),
    [
        (STEPS + 1, ["clip"], {}, f"made {STEPS} updates"),
        (STEPS, ["clip"], {}, "no update is left"),
        (0, ["clip"], {}, "use vcpo-bench run"),
        (AT, ["clpi"], {}, "clip"),
        (AT, [], {}, "--methods"),
        (AT, ["clip"], {"steps": AT}, "no update is left"),
        (AT, ["clip(anchor=proximal)"], {}, "proximal"),
        (AT, ["clip+lr-matched(to=vcpo)"], {}, "uses the step scales"),
        (AT, ["clip+gap-aware"], {}, "weights of past versions, which the run did not keep"),
        (AT, ["clip+void-turns"], {}, "has no environment"),
    ],
)
def test_what_cannot_be_forked_is_refused(
    tmp_path: Path, recorded: Recorded, at: int, methods: list[str], more: dict, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        plan_forks(ForkSpec([recorded()], at, methods, tmp_path / "fork", **more))
    assert not (tmp_path / "fork").exists()


def test_a_proximal_anchor_is_forked_only_where_a_rollout_begins(tmp_path: Path, recorded: Recorded) -> None:
    parent = recorded("clip+ess(base=measured)", "minibatch")
    wanted = ["clip(anchor=proximal)"]
    with pytest.raises(UsageError, match="first update of a rollout"):
        plan_forks(ForkSpec([parent], 5, wanted, tmp_path / "fork"))
    forks = run_forks(ForkSpec([parent], 6, wanted, tmp_path / "fork"))
    assert "clip(anchor=proximal)" in forks


def test_cells_that_cannot_be_done_again_are_refused(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    facts = json.loads((recorded().folder / "cell.json").read_text())
    folder = tmp_path / "cells" / recorded().key
    folder.mkdir(parents=True)
    for change, said in (
        ({"rules_version": "0.1"}, "rules 0.1"),
        ({"method_version": 99}, "code of vcpo has changed"),
        ({"config": facts["config"] | {"regime": "async"}}, "a real clock decided"),
        ({"config": facts["config"] | {"series": "x"}}, "uses the step scales"),
        (
            {"config": facts["config"] | {"model": "qwen@0", "task": "arithmetic"}},
            "language model qwen; name its folder",
        ),
        ({"config": facts["config"] | {"sampler": "vllm"}}, "depend on batch composition"),
        ({"config": facts["config"] | {"device": "cuda"}}, "this machine has 0 CUDA devices"),
        ({"config": facts["config"] | {"start": "0123456789"}}, "--start"),
        ({"config": facts["config"] | {"lr": 1.0}}, "settings that this version does not have"),
        ({"config": 3}, "does not say what was run"),
        ({"config": facts["config"] | {"lora": -1}}, "has config.lora = -1"),
        ({"config": facts["config"] | {"dtype": "int8"}}, "damaged"),
    ):
        write_sealed(folder / "cell.json", facts | change)
        with pytest.raises(VcpoBenchError, match=said):
            read_cell(folder)
    write_sealed(folder / "cell.json", facts | {"config": facts["config"] | {"of an earlier version": 1}})
    assert read_cell(folder).config == recorded().config
    for asked, said in (
        ({"model": str(tmp_path)}, "trained the built-in tiny policy"),
        ({"device": "cuda:1"}, "was recorded on cpu"),
        ({"device": "gpu"}, "choose cpu, cuda or cuda:N"),
    ):
        with pytest.raises(UsageError, match=said):
            read_cell(recorded().folder, **asked)
    with pytest.raises(UsageError, match=f"did you mean {folder}"):
        read_cell(folder.with_name(folder.name[:-1]))
    folder.with_name("running.partial").mkdir()
    with pytest.raises(UsageError, match="has not ended"):
        read_cell(folder.with_name("running"))
    with pytest.raises(UsageError, match="holds the run itself"):
        plan_forks(ForkSpec([recorded()], AT, ["clip"], recorded().results))
