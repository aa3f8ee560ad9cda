"""A run that is saved and resumed is bit-identical to one that was not, whatever state it carries."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from stacked_cells import recorded

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.regimes import Order
from vcpo_bench.bench.training.build import build_trainer

pytestmark = pytest.mark.usefixtures("few_questions")


def config(method: str, **more: object) -> CellConfig:
    values = {"task": "walk-eos", "prompts": 2, "responses": 4, "steps": 7, "staleness": 2, "eval_every": 3} | more
    return CellConfig(method=method, seed=1, **values)


def same(first: dict[str, list], second: dict[str, list]) -> bool:
    return repr(first) == repr(second)  # repr: NaN equals itself, and floats are exact


@pytest.mark.parametrize("method", ["vcpo", "clip+ess(base=measured)", "reinforce+gac", "stapo"])
@pytest.mark.parametrize("record", [pytest.param("basic", marks=pytest.mark.slow), "full"])
@pytest.mark.parametrize("at", [4])
def test_saved_and_resumed_is_the_same_run(tmp_path: Path, method: str, record: str, at: int) -> None:
    through = build_trainer(config(method, record=record))
    while not through.status:
        through.advance()
    first = build_trainer(config(method, record=record))
    for _ in range(at):
        first.advance()
    first.save(tmp_path)
    second = build_trainer(config(method, record=record))
    second.load(tmp_path)
    while not second.status:
        second.advance()
    assert same(recorded(through), recorded(second))
    for ours, theirs in zip(through.policy.parameters(), second.policy.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_runs_with_the_same_seed_are_equal_and_with_another_differ() -> None:
    runs = []
    for seed in (0, 0, 1):
        trainer = build_trainer(replace(config("clip"), seed=seed))
        for _ in range(3):
            trainer.advance()
        runs.append(recorded(trainer))
    assert same(runs[0], runs[1])
    assert not same(runs[0], runs[2])


def test_methods_see_the_same_prompts_and_the_same_noise() -> None:
    first, second = build_trainer(config("clip")), build_trainer(config("vespo"))
    for index in (0, 5):
        ours, theirs = (t.source.generator.run([Order(index)], 0, [t.config.prompts])[0] for t in (first, second))
        assert torch.equal(ours.prompts, theirs.prompts)
        assert torch.equal(ours.responses, theirs.responses)


@pytest.mark.parametrize("method", ["clip", "vcpo"])
def test_recording_more_changes_nothing_about_the_training(method: str) -> None:
    runs = {}
    for record in ("basic", "diagnostics", "full"):
        trainer = build_trainer(config(method, record=record))
        while not trainer.status:
            trainer.advance()
        runs[record] = recorded(trainer)
    for record in ("diagnostics", "full"):
        shared = {name: runs[record][name] for name in runs["basic"]}
        assert same(shared, runs["basic"])
    norms = runs["full"]["samples.parquet/score_norm_sq"]
    assert len(norms) == 7 * 8
    assert min(norms) > 0
    assert "samples.parquet/score_norm_sq" not in runs["diagnostics"]
