"""A regime of one's own: one file is enough to list, plan, train, resume, and fork it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import call, call_here
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from regime_expressions import regimes

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.feeding.process_source import ProcessSource
from vcpo_bench.bench.regimes import REGIMES, CellShape
from vcpo_bench.bench.regimes.checks import check_regime
from vcpo_bench.bench.replay.fork import ForkSpec, plan_forks
from vcpo_bench.bench.replay.recorded_cell import read_cell
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.plugins import load_plugin
from vcpo_bench.naming.template import write_new

HURRIED = '''
from dataclasses import dataclass
from typing import ClassVar
from vcpo_bench.bench.regimes.asynchronous import Async, AsyncSchedule
from vcpo_bench.naming.parameters import integer

class HurriedSchedule(AsyncSchedule):
    """Holds half as many groups as it may."""

    def may_start(self, update):
        return min(super().may_start(update), 2 * self.shape.prompts - len(self.running) - len(self.ready))

@dataclass(frozen=True, kw_only=True)
class Hurried(Async):
    """A short queue."""
    name: ClassVar[str] = "hurried"
    summary: ClassVar[str] = "lag at most 2: a queue of two batches"

    def build(self, staleness, shape):
        return HurriedSchedule(staleness, shape, self.publish_every)
'''


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Path]:
    """The regime that `vcpo-bench new` writes."""
    yield write_new(REGIMES, "written-regime", tmp_path / "mine")[0]
    REGIMES.forget()


@pytest.fixture
def hurried(tmp_path: Path) -> Iterator[Path]:
    """An asynchronous regime, loaded."""
    file = tmp_path / "hurried.py"
    file.write_text(HURRIED)
    assert load_plugin(file) == ["hurried"]
    yield file
    REGIMES.forget()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), k=st.integers(0, 7))
def test_it_is_checked_like_every_other(written: Path, hurried: Path, data: st.DataObject, k: int) -> None:
    load_plugin(written)
    regime = data.draw(st.sampled_from(["written-regime", "hurried"]).flatmap(regimes))
    shape = CellShape(seed=1, prompts=3, responses=2, tokens=12)
    try:
        regime.schedule(k, shape)
    except UsageError:
        assume(False)
    check_regime(regime, k, shape)
    assert REGIMES.parse(regime.text()) == regime


def test_it_is_planned_trained_and_forked(written: Path, tmp_path: Path) -> None:
    sizes = ("--staleness", "3", "--steps", "9")
    shown = call("lab", "plan", "--regime", "written-regime", *sizes, "--plugin", str(written))
    assert shown.exit_code == 0, shown.output
    assert shown.output.splitlines()[-1].startswith("lag max 3")
    out = tmp_path / "out"
    run = ["run", "--methods", "clip", "--regime", "written-regime(every=1)", "--staleness", "2", "--seeds", "1"]
    run += ["--steps", "6", "--prompts", "2", "--responses", "2", "--no-controls", "--jobs", "1", "--out", str(out)]
    done = call_here(*run, "--plugin", str(written))
    assert done.exit_code == 0, done.output
    (folder,) = (out / "cells").iterdir()
    cell = read_cell(folder)
    assert json.loads((folder / "cell.json").read_text())["status"] == "completed"
    assert cell.config.regime == "written-regime(every=1)"
    assert cell.config.plugins == REGIMES.get("written-regime").source != ""
    forks = plan_forks(ForkSpec([cell], 3, ["vespo"], tmp_path / "forks"))
    assert {fork.config.plugins for fork in forks} == {cell.config.plugins}

    spec = GridSpec(methods=("clip",), staleness=(0, 2), seeds=(0,), regimes=("written-regime",), controls=False)
    before = {planned.config.staleness: planned for planned in plan_grid(spec)}
    written.write_text(written.read_text() + "# edited\n")
    load_plugin(written)
    after = {planned.config.staleness: planned for planned in plan_grid(spec)}
    assert before[2].key != after[2].key, "an edited regime makes another cell"
    assert before[0].key == after[0].key, "lag 0 is synchronous training, whatever the regime"
    assert before[0].config.plugins == ""
    with pytest.raises(UsageError, match="has changed since"):
        read_cell(folder)
    REGIMES.forget()
    with pytest.raises(UsageError, match="unknown regime 'written-regime'"):
        read_cell(folder)


def test_the_sampler_process_knows_an_asynchronous_one(hurried: Path) -> None:
    sizes = {"task": "walk-eos", "prompts": 2, "responses": 2, "steps": 4, "eval_every": 100}
    trainer = build_trainer(CellConfig(method="clip", regime="hurried", staleness=3, seed=0, **sizes))
    try:
        assert isinstance(trainer.source, ProcessSource)
        assert trainer.source.setup.plugins == (hurried.resolve(),)
        while not trainer.status:
            trainer.advance()
    finally:
        trainer.close()
    columns = trainer.recorder.tables["steps.parquet"].columns
    assert trainer.status == "completed"
    assert max(columns["lag_max"]) <= 2
    assert trainer.recorder.tables["events.parquet"].columns["event"] == []
