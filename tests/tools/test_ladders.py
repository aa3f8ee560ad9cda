"""A study with a ladder: which runs come next, until a design is complete."""

import itertools

import pandas as pd
import pytest

from studies.ladders import Runs, runs_left

SHARED = {"methods": "reinforce", "staleness": "0", "lr": "1e-5,2e-5,4e-5", "seeds": "1,2"}
PRESET = {
    "synchronous": SHARED,
    "choose": SHARED | {"methods": "tis,vcpo(variant=released)", "staleness": "64"},
    "judge": SHARED | {"seeds": "3,4,5"},
}
BEST = {"reinforce": 2e-5, "tis": 0.25e-5, "vcpo(variant=released)": 8e-5}
"""The rates from which a gain falls to both sides: inside the ladder, two rungs below it and one above."""
COLUMNS = ["method", "staleness", "lr", "seed", "outcome"]


def outcome(method: str, lr: float, seed: int) -> float:
    return -abs(lr / BEST[method] - 1) + 1e-3 * seed


def finish(table: pd.DataFrame, one: Runs) -> pd.DataFrame:
    new = [(*one[:3], seed, outcome(one.method, one.lr, seed)) for seed in one.seeds]
    return pd.concat([table, pd.DataFrame(new, columns=COLUMNS)], ignore_index=True)


@pytest.fixture(scope="module")
def history() -> list[Runs]:
    table, asked = pd.DataFrame({name: [] for name in COLUMNS}), []
    while (one := next(runs_left(PRESET, table), None)) is not None:
        asked.append(one)
        table = finish(table, one)
        assert len(asked) < 50
    return asked


def test_a_ladder_goes_on_until_its_best_rate_is_inside(history: list[Runs]) -> None:
    tried = {method: sorted(one.lr for one in history if one.method == method and 1 in one.seeds) for method in BEST}
    assert tried["reinforce"] == [1e-5, 2e-5, 4e-5]
    assert tried["tis"] == pytest.approx([0.125e-5, 0.25e-5, 0.5e-5, 1e-5, 2e-5, 4e-5])
    assert tried["vcpo(variant=released)"] == pytest.approx([1e-5, 2e-5, 4e-5, 8e-5, 16e-5])


def test_no_run_is_judged_before_all_rates_are_chosen_and_each_at_its_own(history: list[Runs]) -> None:
    kinds = [one.seeds for one in history]
    assert [seeds for seeds, _ in itertools.groupby(kinds)] == [(1, 2), (3, 4, 5)]
    assert {one.method: one.lr for one in history[-3:]} == pytest.approx(BEST)


def test_what_a_table_has_is_not_run_again(history: list[Runs]) -> None:
    table = pd.DataFrame({name: [] for name in COLUMNS})
    for one in history:
        table = finish(table, one)
    assert next(runs_left(PRESET, table), None) is None
    assert list(runs_left(PRESET, table.drop(table.index[-1]))) == [history[-1]._replace(seeds=(5,))]
