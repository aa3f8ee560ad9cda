"""The prose of the page on every method, which no tool writes, says what was run and what the methods are."""

import pandas as pd
import pytest
from page_prose import STUDIES, prose
from short_studies.studies.every_method import LAG, RATES, SEEDS, STEPS, TASK

from vcpo_bench.methods import parse_method

STUDY = STUDIES / "every-method"
TEXT = prose(STUDY / "README.md")
RUNS = pd.read_csv(STUDY / "runs.csv")


def test_what_was_run() -> None:
    assert f"# Every method on `{TASK}` at lag {LAG}, three rates" in TEXT
    assert set(RUNS["task"]) == {TASK}
    assert set(RUNS["staleness"]) == {0, LAG}
    assert set(RUNS["lr"]) == set(RATES)
    assert len(RATES) == 3
    assert f"**Three seeds and {STEPS} short updates rank nothing**" in TEXT
    assert set(RUNS["seed"]) == set(SEEDS)
    assert len(SEEDS) == 3
    assert f"is not reported: {STEPS} updates are too few" in TEXT
    assert set(RUNS.groupby(["method", "staleness"]).size()) == {len(RATES) * len(SEEDS)}


def test_the_lag_was_exact() -> None:
    assert "exactly the requested lag after the fill" in TEXT
    assert (RUNS["lag"] == RUNS["staleness"]).all()


@pytest.mark.parametrize("name", ["gspo", "gspo-token"])
def test_the_bounds_of_gspo_are_the_published_ones(name: str) -> None:
    assert "`gspo` and `gspo-token` have their published bounds (3e-4 and 4e-4)" in TEXT
    assert parse_method(f"{name}(low=3e-4,high=4e-4)").canonical == parse_method(name).canonical
    assert parse_method(f"{name}(low=3e-4,high=5e-4)").canonical != parse_method(name).canonical
