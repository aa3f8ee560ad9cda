"""Cells on a Tinker server that are interrupted: checkpoints, a server that is away, a state that it has lost."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import tinker_cells
import torch
from fake_tinker import FakeServer

from vcpo_bench.bench.training.learner_step import LearnerStep
from vcpo_bench.bench.training.served_learner import ServedLearner


def test_a_checkpoint_on_disk_and_on_the_server_continues_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = tinker_cells.connect(monkeypatch)
    quiet = tinker_cells.trainer("vespo", 2)
    first = tinker_cells.trainer("vespo", 2)
    for _ in range(6):
        quiet.advance()
    for _ in range(3):
        first.advance()
    first.save(tmp_path)
    first.advance()  # lost
    second = tinker_cells.trainer("vespo", 2)
    second.load(tmp_path)
    assert second.step == 3
    for _ in range(3):
        second.advance()
    columns = quiet.recorder.tables["steps.parquet"].columns
    assert all(norm > 0 for norm in columns["grad_norm"])  # weights that never move would be resumed by anything
    other = second.recorder.tables["steps.parquet"].columns
    for name in columns.keys() - {name for name in columns if name.startswith("seconds")}:
        assert list(map(str, columns[name])) == list(map(str, other[name])), name
    assert server.states


def test_a_method_with_a_state_of_its_own_gets_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tinker_cells.connect(monkeypatch)
    trainer = tinker_cells.trainer("clip+ess(base=measured)", 1)
    for _ in range(2):
        trainer.advance()
    trainer.save(tmp_path)
    again = tinker_cells.trainer("clip+ess(base=measured)", 1)
    again.load(tmp_path)
    assert isinstance(trainer.learner, ServedLearner)
    assert isinstance(again.learner, ServedLearner)
    assert trainer.learner.method_state.keys() == again.learner.method_state.keys() != set()
    for name, tensor in trainer.learner.method_state.items():
        assert torch.equal(tensor, again.learner.method_state[name])


def test_a_server_that_goes_away_ends_the_cell_with_one_line_and_the_same_command_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, line = tinker_cells.connect(monkeypatch)
    monkeypatch.setattr("vcpo_bench.bench.running.cell.run_cell.CHECKPOINT_SECONDS", 0.0)
    cell = tinker_cells.config("clip", 1)
    step = ServedLearner.update

    def leaving(self: ServedLearner, batch: Any, now: int) -> LearnerStep:
        line.away = now == 4
        if line.away:
            server.broken["forward"] = ConnectionError("lost with secret Basic")
        return step(self, batch, now)

    monkeypatch.setattr(ServedLearner, "update", leaving)
    status, facts = tinker_cells.run(cell, tmp_path)
    assert status == "error"
    assert "tinker_server_away: http://server.test:8000 does not answer, at forward" in facts["reason"]
    assert "the same command resumes" in facts["reason"]
    assert facts["steps_done"] == 4
    monkeypatch.setattr(ServedLearner, "update", step)
    line.away = False
    server.broken.clear()
    status, facts = tinker_cells.run(cell, tmp_path)
    assert (status, facts["steps_done"]) == ("completed", 6)
    assert "load" in server.calls


def test_a_state_that_the_server_has_lost_is_one_line_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = tinker_cells.connect(monkeypatch)
    monkeypatch.setattr("vcpo_bench.bench.running.cell.run_cell.CHECKPOINT_SECONDS", 0.0)
    cell = tinker_cells.config("clip", 1)
    with monkeypatch.context() as interrupted:
        refuse_update_4(server, interrupted)
        assert tinker_cells.run(cell, tmp_path)[1]["steps_done"] == 4
    server.emptied = set(server.states)
    assert "tinker_state_lost: http://server.test:8000" in tinker_cells.run(cell, tmp_path)[1]["reason"]
    server.emptied = set()
    kept, server.states = server.states, {}
    for _ in range(2):  # a rerun makes it no worse
        status, facts = tinker_cells.run(cell, tmp_path)
        assert (status, facts["steps_done"]) == ("error", 4)
        assert "tinker_request_failed: http://server.test:8000, load_state tinker://" in facts["reason"]
        assert "give the server that has it with --url" in facts["reason"]
        (folder,) = re.findall(r"if it is lost, delete the folder (\S+): the same command", facts["reason"])
        assert folder == f"{tmp_path.name}/{cell.key(1)}"
    # both ways out: the server that has the state, and a new start without it
    for states, steps in ((kept, 2), ({}, 6)):
        shutil.copytree(tmp_path, copy := tmp_path.with_name(f"copy-{steps}") / tmp_path.name)
        server.states, before = dict(states), len(server.steps)
        if not states:
            shutil.rmtree(copy.parent / folder)
        assert tinker_cells.run(cell, copy)[0] == "completed"
        assert len(server.steps) - before == steps


def refuse_update_4(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the cell that is run next."""
    note = server.note

    def refusing(verb: str) -> None:
        if verb == "optim_step" and len(server.steps) == 4:
            raise ValueError("not now")
        note(verb)

    monkeypatch.setattr(server, "note", refusing)
