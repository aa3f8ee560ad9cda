"""The acting study makes the runs that are missing and no others, and its branches share their parents' past."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest
from acting_study import cells, design, page, run, tables, verdicts
from acting_study.design import NOTHING, SLOWER, STEPS, Branch, Parent
from replays import quiet
from replays import tables as recorded
from run_archives.unpack import unpack_folder

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.cells.settings import CellSettings
from vcpo_bench.bench.replay.replay import Replay
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.run_cell import run_cell
from vcpo_bench.records import ORIGINS_FOLDER

FIRST = Parent("walk", "risky", design.SEEDS[0])


def ended(branches: list[Branch], parents: list[Parent]) -> pd.DataFrame:
    """Runs that have ended; risky parents were alarmed at update 60 plus their seed."""
    rows = [(parent, NOTHING, 0) for parent in parents] + [(each.parent, each.act, each.at) for each in branches]
    facts = dict.fromkeys(tables.FACTS, 0.5) | {"updates": STEPS}
    found = []
    for parent, act, at in rows:
        place = {"task": parent.task, "group": parent.group, "seed": parent.seed, "act": act, "at": at}
        alarm = 60.0 + parent.seed - FIRST.seed if act == NOTHING and parent.group == "risky" else np.nan
        found.append(place | facts | {"alarm": alarm})
    return pd.DataFrame(found, columns=[*tables.RUN, *tables.FACTS])


class Machine:
    """Stands in for training: what it is asked to run has ended from then on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done = ended([], [])
        self.asked: list[tuple[str, int]] = []
        self.failing = 0
        self._parents = {cell.key: parent for parent, cell in cells.parent_cells().items()}
        monkeypatch.setattr(run, "run_table", lambda out: self.done)
        monkeypatch.setattr(run, "fork_cells", self._fork)
        monkeypatch.setattr(run, "run_grid", self._run)

    def _fork(self, out: Path, branches: list[Branch]) -> list[Branch]:
        return branches

    def _run(self, wanted: list[PlannedCell] | list[Branch], options: RunOptions, view: object) -> int:
        self.asked.append((options.out.name, len(wanted)))
        branches = [each for each in wanted if isinstance(each, Branch)]
        parents = [self._parents[each.key] for each in wanted if isinstance(each, PlannedCell)]
        self.done = tables.joined(self.done, ended(branches, parents))
        return self.failing


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_parents_come_first_and_nothing_is_made_twice(machine: Machine, tmp_path: Path) -> None:
    run.grow(tables.shipped(tmp_path / "none"), tmp_path, 1, 32)
    assert machine.asked == [("parents", 64), ("parents", 64), ("forks", 224)], "the second finds its cells ended"
    assert tables.complete(machine.done)
    machine.asked.clear()
    run.grow(tables.shipped(tmp_path / "none"), tmp_path, 1, 32)
    assert machine.asked == []
    whole, machine.done = machine.done, ended([], [])
    run.grow(whole, tmp_path, 1, 32)
    assert machine.asked == [], "another session with the whole table"


def test_another_session_makes_what_the_table_lacks(machine: Machine, tmp_path: Path) -> None:
    run.grow(tables.shipped(tmp_path / "none"), tmp_path, 1, 32)
    whole, machine.done = machine.done, ended([], [])
    machine.asked.clear()
    lacking = (whole["task"] == "walk") & (whole["seed"] == 203) & (whole["act"] == "vcpo") & (whole["group"] == "calm")
    run.grow(whole[~lacking], tmp_path, 1, 32)
    assert machine.asked == [("parents", 1), ("forks", 1)], "its parent is made again"
    assert tables.complete(tables.joined(whole[~lacking], machine.done))


def test_a_parent_that_comes_out_otherwise_is_refused(machine: Machine, tmp_path: Path) -> None:
    parents = ended([], design.parents())
    other = parents.assign(final_reward=parents["final_reward"] + 0.01 * (parents["seed"] == 205))
    with pytest.raises(RuntimeError, match=r"differ from runs.csv at .*'seed': 205"):
        run.grow(other, tmp_path, 1, 32)
    assert machine.asked == [("parents", 64)]


def test_failed_cells_end_the_program(machine: Machine, tmp_path: Path) -> None:
    machine.failing = 2
    with pytest.raises(RuntimeError, match="2 cells failed"):
        run.grow(tables.shipped(tmp_path / "none"), tmp_path, 1, 32)


def test_branches_wait_for_the_first_of_two_tables() -> None:
    one, other = ended([], [FIRST]), ended([], [FIRST]).assign(alarm=99.0)
    assert tables.joined(one, other)["alarm"].tolist() == [60.0]
    assert tables.joined(ended([], []), other)["alarm"].tolist() == [99.0]
    assert tables.missing_parents(one) == [each for each in design.parents() if each != FIRST]
    assert not tables.complete(one)


@pytest.mark.parametrize("differs", [False, True])
def test_a_branch_without_its_parents_past_is_refused(
    differs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = {"cell": SimpleNamespace(key="parent"), "began": 50, "trainer": SimpleNamespace(step=61), "_passed": ()}
    again = SimpleNamespace(divergence=lambda: 52 if differs else None, **facts)
    state = tmp_path / cells.STATES / "0060" / ORIGINS_FOLDER / "parent-00000060"

    def replayed(spec: object, planned: object, wait: bool, say: Callable[[str], None]) -> None:
        state.mkdir(parents=True)
        say(Replay.summary(cast(Replay, again)))

    monkeypatch.setattr(cells, "read_cell", lambda folder: SimpleNamespace(key="parent"))
    monkeypatch.setattr(cells, "plan_forks", lambda spec: [SimpleNamespace(config=SimpleNamespace(method="vcpo"))])
    monkeypatch.setattr(cells, "write_origins", replayed)
    with pytest.raises(RuntimeError, match="from update 52 on") if differs else nullcontext():
        cells.fork_cells(tmp_path, [Branch(FIRST, "vcpo", 60)])
    assert state.exists() is not differs, "a later session would take the state as it is"
    assert ("bit-identical to the record" in capsys.readouterr().out) is not differs


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study of 12 updates and two seeds, whose detector speaks after four updates with stale data."""
    small = CellSettings(record="diagnostics", steps=12, prompts=2, responses=4, eval_every=3)
    for module in (design, verdicts):
        monkeypatch.setattr(module, "RATES", {"chain": 3e-3})
    for where, name, value in (
        (design, "SEEDS", (0, 1)),
        (design, "WAVES", ((0,), (1,))),
        (verdicts, "WAVES", ((0,), (1,))),
        (design, "STEPS", 12),
        (cells, "SETTINGS", small),
        (cells, "LAG", 2),
        (tables, "DETECTOR", "kl_length(window=1,threshold=0.0,persistence=4)"),
        (run, "KEPT_EVERY", 2),
    ):
        monkeypatch.setattr(where, name, value)


@pytest.mark.slow  # trains: starts two workers
def test_the_whole_study_in_small(tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "results"
    run.grow(tables.shipped(tmp_path / "runs.csv"), out, 1, 32)
    said = capsys.readouterr().out
    assert "bit-identical to the record" in said
    assert "differ from the record" not in said
    runs = tables.run_table(out)
    assert tables.complete(runs)
    assert runs.groupby("act").size()[NOTHING] == 4
    assert set(runs["act"]) == {NOTHING} | {act for acts in design.PLAN.values() for _, act in acts}
    alarmed = runs.loc[(runs["act"] == NOTHING) & (runs["group"] == "risky"), "alarm"]
    assert alarmed.between(4, 8).all()
    branches = {each for each in design.branches(tables.heard(runs)).values() if each and each.parent.seed == 0}
    for each in branches:
        _check_past(out, each)
    _check_alone(out, next(each for each in sorted(branches) if each.act == "vcpo"))
    runs.to_csv(tmp_path / "runs.csv", index=False, float_format="%.10g")
    page.refresh(tmp_path)
    assert "too few failures" in (tmp_path / "README.md").read_text()
    run.grow(tables.shipped(tmp_path / "runs.csv"), tmp_path / "elsewhere", 1, 32)
    assert not (tmp_path / "elsewhere").exists(), "every run is in the table"


def _check_past(out: Path, branch: Branch) -> None:
    """A branch is its parent bit for bit up to its update, and differs from then on."""
    (cell,) = cells.fork_cells(out, [branch])
    own = recorded(out / cells.FORKS / "cells" / cell.key)
    parent = recorded(out / cells.PARENTS / "cells" / cells.parent_cells()[branch.parent].key)
    steps, before = own["steps.parquet"], parent["steps.parquet"]
    for name, column in before.items():
        assert repr(steps[name][: branch.at]) == repr(column[: branch.at])
    if branch.act == SLOWER:
        assert steps["lr"][branch.at :] == pytest.approx([lr / 3 for lr in before["lr"][branch.at :]], rel=1e-3)
    else:
        assert repr(steps["grad_norm"][branch.at :]) != repr(before["grad_norm"][branch.at :])


def _check_alone(out: Path, branch: Branch) -> None:
    """A branch is the same when it is trained without a stack."""
    (cell,) = cells.fork_cells(out, [branch])
    folder = ResultsFolder(out.parent / "alone")
    assert run_cell(cell, folder.cells, 0, quiet) == "completed"
    assert repr(recorded(folder.cells / cell.key)) == repr(recorded(out / cells.FORKS / "cells" / cell.key))


@pytest.mark.slow  # unpacks every run
def test_the_shipped_updates_make_the_shipped_table(tmp_path: Path) -> None:
    unpack_folder(tables.FOLDER / "updates", tmp_path)
    made, known = tables.run_table(tmp_path), tables.shipped(tables.RUNS)
    pd.testing.assert_frame_equal(made, known, check_dtype=False, rtol=1e-6)
