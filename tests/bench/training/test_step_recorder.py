"""Tables of a cell in training."""

from dataclasses import replace

import numpy as np
import pytest

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.training.build import build_recorder, build_trainer
from vcpo_bench.bench.training.step_recorder import _lag_rows
from vcpo_bench.records.step_facts import StepFacts


def test_lags_are_counted_by_trajectory_and_by_token() -> None:
    version = np.array([[3, 4, 0], [5, 5, 5]])
    mask = np.array([[True, True, False], [True, True, True]])
    facts = StepFacts(6, np.zeros((2, 3)), mask, version, np.zeros((2, 3)))
    rows = [(row["step"], row["lag"], row["trajectories"], row["tokens"]) for row in _lag_rows(facts)]
    assert rows == [(6, 1, 1, 3), (6, 2, 0, 1), (6, 3, 1, 1)]


@pytest.mark.parametrize(("level", "measured"), [("basic", []), ("diagnostics", ["grad_cosine", "head_grad_norm"])])
def test_only_what_the_level_writes_is_measured(level: str, measured: list[str]) -> None:
    sizes = {"prompts": 2, "responses": 2, "steps": 2, "eval_every": 10}
    trainer = build_trainer(CellConfig(method="clip", staleness=0, seed=0, record=level, **sizes))
    assert [one.name for one in trainer.learner.settings.diagnostics] == measured
    trainer.advance()
    assert (trainer.learner.previous_gradient is not None) == bool(measured)


def test_a_fact_without_a_column_is_an_error_of_the_source() -> None:
    trainer = build_trainer(CellConfig(method="clip", staleness=0, seed=0, prompts=2, responses=2, steps=2))
    given = trainer.source.next_batch(0)
    done = trainer.learner.update(given.batch, 0)
    with pytest.raises(KeyError, match="weather"):
        trainer.recorder.update(0, replace(given, facts={"weather": "fine"}), done, 1e-4)


@pytest.mark.parametrize(("regime", "expected"), [("async", 126.0), ("async(clock=virtual)", 118.0)])
def test_time_in_a_queue_and_virtual_waiting_are_no_time_of_the_run(regime: str, expected: float) -> None:
    recorder = build_recorder(CellConfig(method="clip", staleness=2, seed=0, regime=regime))
    names = ("sample", "score", "update", "record", "wait", "in_flight", "in_queue")
    recorder.tables["steps.parquet"].append({f"seconds_{name}": 2.0**place for place, name in enumerate(names, -1)})
    recorder.tables["evals.parquet"].append({"seconds": 110.5})
    assert recorder.seconds() == expected
