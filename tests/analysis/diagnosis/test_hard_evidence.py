"""What decides without the reward: numbers that are not finite up to the end of the log."""

from pathlib import Path

import numpy as np
import pytest
from foreign_runs import write_jsonl

from vcpo_bench.analysis.diagnosis import Diagnosis, diagnose, read_run

T = np.arange(200)


def verl(folder: Path, broken: np.ndarray, name: str = "actor/grad_norm", until: int = 150) -> Diagnosis:
    """A run that learns until a row, with one signal that is not finite in some rows."""
    columns = {"critic/score/mean": 0.2 + 0.4 * np.minimum(T, until) / T.size, "actor/pg_loss": T % 7 / 100}
    columns["actor/grad_norm"] = 0.2 + T % 5 / 100
    columns[name] = np.where(broken, np.nan, columns[name])
    rows = [{name: float(values[t]) for name, values in columns.items()} for t in T]
    return diagnose(read_run(write_jsonl(folder / "metrics.jsonl", rows, first=1)))


def test_a_gradient_that_is_not_finite_to_the_end_needs_no_loss_beside_it(tmp_path: Path) -> None:
    found = verl(tmp_path, T >= 150)
    assert (found.verdict, found.onset) == ("collapsed", 151)
    assert "is not finite from step 151 to the end, where trainers skip the update" in found.outcome.reason
    assert [one.name for one in found.causes if one.standing == "probable"] == ["gradient or non-finite"]
    assert [one.sign for one in found.chain] == ["numbers not finite"]  # the reward is as it was
    assert found.try_next


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("actor/grad_norm", (T >= 80) & (T < 110)),  # comes back
        ("actor/grad_norm", T >= 181),  # as long as a scaler may skip
        ("actor/grad_norm", T >= 1),  # not measured
        ("actor/grad_norm", T % 10 > 0),
        ("actor/grad_norm", (T % 10 > 0) | (T > 150)),
        ("actor/pg_loss", T >= 150),
    ],
)
def test_what_is_no_gradient_that_breaks_decides_nothing(tmp_path: Path, name: str, broken: np.ndarray) -> None:
    assert verl(tmp_path, broken, name).verdict == "healthy"


def test_a_gradient_is_not_broken_while_the_reward_rises(tmp_path: Path) -> None:
    assert verl(tmp_path, T >= 50, until=200).verdict == "healthy"
    assert verl(tmp_path, T >= 50, until=50).verdict == "collapsed"
