"""Cells on a real Tinker server: which weights draw a token, rewards that rise, kills of either side, a lost state."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import tinker_runs
import torch
from patience import within
from tinker_runs import AGREEMENT, config, facts_of, run, table_of
from tinker_server import TinkerServer

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.learners.tinker_api import service
from vcpo_bench.bench.learners.tinker_api.policy import TinkerPolicy
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.learner_step import LearnerStep
from vcpo_bench.bench.trajectories import Trajectories

COLUMNS = ["step", "sampled_reward", "batch_reward", "grad_norm", "step_scale", "ess_ratio", "kl_mu_theta_k3"]


@pytest.mark.parametrize("staleness", [0, 4])
def test_the_tokens_of_an_update_were_drawn_by_the_version_of_its_lag(
    staleness: int, server: TinkerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every version is saved on the server. Of all of them, only the one that the records name gives the tokens of an
    update the log-probabilities that they were drawn with."""
    cell = config(server.model, "vcpo(baseline=group)", staleness, record="diagnostics", steps=7)
    with closing(build_trainer(cell, start=server.model)) as trainer:
        policy, update = trainer.policy, trainer.learner.update
        assert isinstance(policy, TinkerPolicy)
        states, taken = list[tuple[str, int, torch.Tensor]](), list[Trajectories]()

        def watched(batch: Trajectories, now: int) -> LearnerStep:
            states.append((policy.save_state(), policy.version, policy.witness()))
            taken.append(batch)
            return update(batch, now)

        monkeypatch.setattr(trainer.learner, "update", watched)
        while not trainer.status:
            trainer.advance()
        gaps = torch.zeros(7, 7)
        for version, state in enumerate(states):
            policy.load_state(*state)
            for now, batch in enumerate(taken):
                gaps[version, now] = (trainer.learner.logp(batch) - batch.behavior_logp).abs().max()
    tables = {name: pd.DataFrame(table.columns) for name, table in trainer.recorder.tables.items()}
    lags, steps = tables["lags.parquet"], tables["steps.parquet"]
    assert lags["lag"].tolist() == [min(now, staleness) for now in range(7)]
    assert set(lags["trajectories"]) == {32}
    drawn = torch.zeros(7, 7, dtype=torch.bool)
    drawn[(lags["step"] - lags["lag"]).tolist(), lags["step"].tolist()] = True
    print("log-probabilities under version (row) of the tokens of update (column) differ by at most", gaps)
    assert float(gaps[drawn].max()) <= AGREEMENT
    assert float(gaps[~drawn].min()) >= 100 * AGREEMENT
    assert (steps["grad_norm"] > 0).all()
    assert (steps["ess_ratio"] > 1 - 1e-6).tolist() == [now == 0 or staleness == 0 for now in range(7)]


def test_the_reward_rises(server: TinkerServer, tmp_path: Path) -> None:
    cell = config(server.model, "vcpo(baseline=group)", steps=20)
    assert run(cell, server.model, tmp_path) == "completed", facts_of(tmp_path, cell)["error"]
    reward = table_of(tmp_path, cell)["sampled_reward"]
    print("reward of each update", [round(each, 3) for each in reward])
    assert float(reward[-5:].mean()) > float(reward[:5].mean()) + 0.1


def test_a_state_that_the_server_has_lost_is_one_line_that_says_what_to_do(
    server: TinkerServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its file this server says that it loads it, and keeps untrained ones. Without its record it refuses."""
    cell = config(server.model)
    known = set((server.folder / "checkpoints").iterdir())
    with monkeypatch.context() as patched:
        patched.setattr("vcpo_bench.bench.running.cell.run_cell.CHECKPOINT_SECONDS", 0.0)
        at_update(2, lambda: 1 / 0, patched)
        assert run(cell, server.model, tmp_path) == "error"
    (model,) = set((server.folder / "checkpoints").iterdir()) - known
    shutil.rmtree(model)
    reasons = [failed(cell, server.model, tmp_path)]
    with closing(sqlite3.connect(server.folder / "tinker.db")) as records, records:
        records.execute("DELETE FROM checkpoints WHERE model_id = ?", (model.name,))
    reasons += [failed(cell, server.model, tmp_path)]
    print(reasons)
    for reason, named in zip(reasons, ("tinker_state_lost", "tinker_request_failed"), strict=True):
        assert f"{named}: {server.url}, load_state tinker://{model.name}/" in reason
        assert f"if it is lost, delete the folder cells/{cell.key(1)}" in reason
    shutil.rmtree(tmp_path / "cells" / cell.key(1))
    assert run(cell, server.model, tmp_path) == "completed"


def failed(cell: CellConfig, model: Path, out: Path) -> str:
    """Why a cell ends with an error after two updates."""
    assert run(cell, model, out) == "error"
    facts = facts_of(out, cell)
    assert facts["steps_done"] == 2
    return str(facts["reason"])


def at_update(update: int, happens: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something happen as soon as a cell makes this update."""
    step = TinkerPolicy.step

    def interrupted(self: TinkerPolicy, *inputs: Any) -> float:
        if self.version == update:
            happens()
        return step(self, *inputs)

    monkeypatch.setattr(TinkerPolicy, "step", interrupted)


def test_killed_on_either_side_a_cell_resumes_where_it_was(
    server: TinkerServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is killed, then the server of the resumed cell; in the end the numbers are those of a quiet run."""
    cell = config(server.model, "vespo", 2)
    assert run(cell, server.model, tmp_path / "quiet") == "completed"
    first, *_, last = server.published()
    assert all(float((last[name] - tensor).abs().max()) > 1e-3 for name, tensor in first.items())
    kill_the_command(json.dumps(cell.values()), server.model, tmp_path / "loud")
    with monkeypatch.context() as patched:
        patched.setattr("vcpo_bench.bench.running.cell.run_cell.CHECKPOINT_SECONDS", 0.0)
        patched.setattr(service, "PATIENCE_SECONDS", within(5.0))
        at_update(4, server.kill, patched)
        assert run(cell, server.model, tmp_path / "loud") == "error"
    facts = facts_of(tmp_path / "loud", cell)
    assert "tinker_server_away" in facts["reason"]
    assert "the same command resumes" in facts["reason"]
    assert 0 < facts["steps_done"] <= 4
    server.start()
    assert run(cell, server.model, tmp_path / "loud") == "completed"
    quiet, loud = (table_of(tmp_path / name, cell)[COLUMNS] for name in ("quiet", "loud"))
    assert (quiet["grad_norm"] > 0).all()
    assert (quiet["kl_mu_theta_k3"][1:] > 1e-6).all()  # the weights that draw and those that are trained differ
    pd.testing.assert_frame_equal(quiet, loud, rtol=1e-4, atol=1e-6)


def kill_the_command(cell: str, model: Path, out: Path) -> None:
    """Run a cell in a process of its own until there is a checkpoint."""
    path = ":".join(each for each in sys.path if each)
    environment = {**os.environ, "VCPO_BENCH_CHECKPOINT_SECONDS": "0", "PYTHONPATH": path}
    command = [sys.executable, tinker_runs.__file__, cell, str(model), str(out)]
    process = subprocess.Popen(command, env=environment)
    limit = time.monotonic() + within(300.0)
    while process.poll() is None and not list(out.glob("cells/*.partial/checkpoint-*")):
        assert time.monotonic() < limit
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
