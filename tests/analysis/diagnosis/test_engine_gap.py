"""A distance between engine and trainer that grows at a lag that does not."""

import json
from pathlib import Path

import numpy as np
import pytest

from vcpo_bench.analysis.diagnosis import Diagnosis, diagnose
from vcpo_bench.analysis.logs import read_run
from vcpo_bench.reports.terminal.diagnosis import diagnosis_text

T = np.arange(200)
RNG = np.random.default_rng(8)
STALENESS = "training/off_policy/trajectory_staleness_worst/mean"


def noisy(values: np.ndarray, spread: float = 0.02) -> np.ndarray:
    return values + RNG.normal(0, spread, values.size)


REWARD = noisy(np.where(T < 150, 0.6, 0.02))


def read(folder: Path, rows: dict[str, np.ndarray]) -> Diagnosis:
    lines = [json.dumps({"step": int(t), **{name: float(one[t]) for name, one in rows.items()}}) for t in T]
    (folder / "metrics.jsonl").write_text("\n".join(lines))
    return diagnose(read_run(folder / "metrics.jsonl"))


def probable(found: Diagnosis) -> list[str]:
    return [one.name for one in found.causes if one.standing == "probable"]


@pytest.mark.parametrize("lag", [0.0, 1.7, 4.0])
def test_a_gap_that_grows_at_a_lag_that_does_not_may_be_of_the_engine(tmp_path: Path, lag: float) -> None:
    gap = noisy(np.where(T < 130, 0.01, 0.25), 1e-3)
    lags = noisy(np.full(200, lag), 0.01)
    found = read(
        tmp_path,
        {"critic/score/mean": REWARD, "training/rollout_probs_diff_mean": gap, STALENESS: lags},
    )
    assert probable(found) == ["engine gap"]
    assert "did not grow with it" in diagnosis_text(found)
    assert ("versions old" in diagnosis_text(found)) == (lag == 4)


@pytest.mark.parametrize(("lag", "causes"), [(1, ["engine gap"]), (4, ["lag and weights", "engine gap"])])
def test_a_distance_alone_at_a_lag_that_does_not_grow(tmp_path: Path, lag: int, causes: list[str]) -> None:
    rows = {
        "train/agg/all/math/reward/mean": REWARD,
        "mismatch_kl/all/mean": noisy(np.where(T < 130, 0.01, 0.25), 1e-3),
        "off_policy/mean": np.full(200, lag),
        "loss/mean": np.zeros(200),
    }
    assert probable(read(tmp_path, rows)) == causes
