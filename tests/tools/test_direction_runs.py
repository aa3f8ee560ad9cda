"""The direction study measures the cosine it says, while it trains runs that are those of a cell alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from boundary_study.design import PLACES, SEEDS, Place
from boundary_study.run import cells
from direction_study import run
from direction_study.retraced import cosine, retraced
from direction_study.tables import NAME, Measured

from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.records import STEPS_FILE

LAG, STEPS = 2, 6


def test_the_cosine_of_two_vectors() -> None:
    east, north = torch.tensor([2.0, 0.0]), torch.tensor([3.0, 3.0])
    assert cosine(east, north) == pytest.approx(0.5**0.5)
    assert cosine(east, -east) == -1.0
    assert np.isnan(cosine(east, torch.zeros(2)))


def test_steps_are_compared_with_the_way_since_the_data_were_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boundary_study.run.STEPS", STEPS)
    planned = cells([(Place("walk", "tis", LAG, 5.6e-4), 0.0, seed) for seed in (1, 2)])
    ways = retraced(planned)
    alone = build_trainer(planned[1].config, start=planned[1].start)
    weights = [_flat(alone.policy.trainable())]
    while not alone.status:
        alone.advance()
        weights.append(_flat(alone.policy.trainable()))
    wanted = [_cosine(weights[t + 1] - weights[t], weights[t] - weights[max(t - LAG, 0)]) for t in range(1, STEPS)]
    assert np.isnan(ways[1].cosines[0]), "the weights have not moved yet"
    assert ways[1].cosines[1:] == pytest.approx(wanted, rel=1e-9)
    assert ways[0].cosines[1:] != pytest.approx(wanted, rel=1e-3), "another seed"
    recorded, ours = (each.recorder.tables[STEPS_FILE].columns["grad_norm"] for each in (alone, ways[1].trainer))
    assert recorded == ours, "watching changes nothing"


def _flat(parameters: list[torch.Tensor]) -> np.ndarray:
    return np.concatenate([each.detach().numpy().astype(np.float64).ravel() for each in parameters])


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_a_cell_that_ends_early_leaves_the_others_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boundary_study.run.STEPS", STEPS)
    planned = cells([(Place("walk", "tis", LAG, 5.6e-4), 0.0, seed) for seed in (1, 2)])
    whole = retraced(planned)[1].cosines

    def short(*args: Any, **options: Any) -> Trainer:
        trainer = build_trainer(*args, **options)
        trainer.updates = 3 if trainer.config.seed == 1 else STEPS
        return trainer

    monkeypatch.setattr("direction_study.retraced.build_trainer", short)
    ended, other = retraced(planned)
    assert len(ended.cosines) == 3
    assert other.cosines[1:] == whole[1:]


@pytest.mark.slow  # trains
def test_runs_are_made_kept_and_gathered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boundary_study.run.STEPS", 12)
    runs = [(PLACES[8], 0.0, seed) for seed in SEEDS[:3]]

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(run, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            run.measure(runs, tmp_path)
    assert run.measure(runs, tmp_path) == f"walk-eos, reinforce, lag 16: 3 runs from seed {SEEDS[0]} on"
    found = Measured.of(tmp_path)
    assert found.tables.runs["seed"].tolist() == list(SEEDS[:3])
    assert found.cosines.groupby("seed").size().tolist() == [12] * 3
    assert found.signals()[NAME].notna().all()
    assert found.machines["runs"].tolist() == [3]
    assert run.measure(runs[:2], tmp_path).endswith(f"2 runs from seed {SEEDS[0]} on"), "another stack, none anew"
    monkeypatch.setattr(run, "retraced", lambda planned: pytest.fail("it has been made"))
    run.measure(runs, tmp_path)
