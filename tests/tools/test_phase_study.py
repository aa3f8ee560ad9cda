"""The phase study's search finds planted boundaries, and its tables recover what was planted."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from phase_study import contrasts, design, tables
from phase_study.checks import checks
from phase_study.design import Unit
from phase_study.earnings import earnings
from phase_study.failures import failures
from phase_study.horizons import horizons
from phase_study.levels import level_table
from phase_study.same_rate import same_rate
from phase_world import SEEDS, planted, row, world


def at(runs: pd.DataFrame, unit: Unit, rung: int) -> "pd.Series[bool]":
    names = ["seed", "task", "method", "staleness", "rung"]
    return (runs[names] == [unit.seed, unit.task, unit.method, unit.staleness, rung]).all(axis=1)


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return world()


def test_every_search_ends_at_its_boundary(runs: pd.DataFrame) -> None:
    found = tables.outcomes(runs)
    assert len(found) == len(SEEDS) * len(design.PLAN.units(0)) == 4 * 58
    for unit, ended in found.items():
        low, high = design.bracket(ended)
        assert high - low == 1
        assert low < planted(unit) < high or high == len(design.LADDER)
    assert tables.complete(runs) == list(SEEDS)
    assert tables.complete(runs[(runs["seed"] < 2) | (runs["task"] == "walk")]) == [0, 1]


def test_later_seeds_begin_where_earlier_ones_ended(runs: pd.DataFrame) -> None:
    per_seed = runs.groupby("seed").size()
    assert per_seed[3] < per_seed[0]
    assert per_seed.sum() < 0.45 * len(SEEDS) * 58 * len(design.LADDER), "that is no search"


def test_checks_are_counted_and_contradictions_found(runs: pd.DataFrame) -> None:
    drawn, lent = checks(runs).to_dict("records")
    assert 30 <= drawn["runs"] <= 90
    assert (drawn["contradicting"], lent["runs"]) == (0, 0)
    unit, check = next((unit, own.check) for unit, own in tables.own_searches(runs).items() if own.check is not None)
    wrong = runs.copy()
    wrong.loc[at(wrong, unit, check), "failed"] ^= True
    assert checks(wrong).iloc[0]["contradicting"] == 1


def test_runs_that_only_lend_step_sizes_do_not_move_a_boundary(runs: pd.DataFrame) -> None:
    searches = tables.own_searches(runs).items()
    unit = next(unit for unit, own in searches if unit.seed == 3 and min(own.outcomes) > 1 and own.check is None)
    lent = pd.DataFrame([row(unit, rung) | {"failed": True, "onset": 50.0} for rung in (0, 1)])
    whole = pd.concat([runs, lent], ignore_index=True)
    assert design.bracket(tables.outcomes(whole)[unit]) == (-1, 0), "all runs together say something else"
    pd.testing.assert_frame_equal(tables.boundaries(whole), tables.boundaries(runs))
    assert not design.wanted(SEEDS, tables.outcomes(whole))
    said = checks(whole).set_index("kind").loc["lenders of step scales"]
    assert (said["runs"], said["contradicting"]) == (2, 2)


def test_the_exponent_is_recovered_and_the_law_of_one_refuted(runs: pd.DataFrame) -> None:
    bounds = tables.boundaries(runs[(runs["method"] == "tis") & (runs["task"] == "walk")])
    found = tables.exponents(bounds).set_index(["task", "method", "lag"])
    one = found.loc[("walk", "tis", "asked")]
    truth = 0.5 * (np.log2(65) - np.log2(5)) / 4
    assert one["low"] < truth < one["high"] < 0.75
    assert one["verdict"] == "refuted"
    at_top = bounds.assign(low=8.0, high=np.inf)
    assert set(tables.exponents(at_top)["verdict"]) == {"at an end of the ladder"}


def test_paired_differences_are_recovered(runs: pd.DataFrame) -> None:
    bounds = tables.boundaries(runs)
    rates = contrasts.rates(runs, bounds)
    assert len(rates) == 6
    assert (rates["reach90"] > contrasts.RATE_MARGIN).all(), "four seeds cannot show that two boundaries are equal"
    assert rates["lender_failed"].sum() < 6, "of 24: VCPO bears what its control does not"
    dead = runs.assign(failed=runs["failed"] | (runs["method"] == "vcpo"))
    assert contrasts.rates(dead, bounds)["lender_failed"].sum() > 6
    assert (rates["low"] < 1).all() and (rates["high"] > 1).all()  # noqa: PT018 - one interval
    assert "equivalent" not in set(rates["verdict"])
    few = contrasts.rates(runs, bounds[bounds["seed"] < 3])
    assert set(few["verdict"]) == {"too few pairs"}
    assert list(rates).index("difference") < list(rates).index("low")
    rewards = contrasts.rewards(bounds)
    assert ((rewards["difference"] > 0.02) & (rewards["difference"] < 0.13)).all()
    assert set(rewards["seeds"]) == {4}
    assert (rewards["low"] <= rewards["low90"]).all()
    stalled = contrasts.rewards(bounds.assign(event="stall"))
    for name in ("dented_vcpo", "dented_rival"):
        assert (set(rewards[name]), set(stalled[name])) == ({0}, {4})
    assert set(contrasts.rewards(bounds[bounds["seed"] < 3])["verdict"]) == {"too few pairs"}


def test_the_same_rate_is_compared_where_both_survive(runs: pd.DataFrame) -> None:
    matched = contrasts.MATCHED
    place = {"task": "walk", "staleness": 16, "event": "", "failed": False, "onset": np.nan}
    rows = [
        place | {"seed": seed, "rung": rung, "method": method, "final_reward": 0.5 + gain + 0.001 * seed * gain}
        for seed in range(4)
        for rung in (3, 4)
        for method, gain in (("vcpo", 0.2), (matched, 0.0))
    ]
    table = pd.DataFrame(rows)
    table.loc[(table["seed"] == 0) & (table["rung"] == 4) & (table["method"] == matched), "failed"] = True
    table.loc[(table["seed"] == 1) & (table["rung"] == 4) & (table["method"] == "vcpo"), "failed"] = True
    found = same_rate(table).iloc[0]
    assert found[["pairs", "both_survive", "only_vcpo", "only_matched"]].tolist() == [8, 6, 1, 1]
    assert found["difference"] == pytest.approx(0.2, abs=0.001)
    assert (found["seeds"], found["verdict"]) == (4, "more")


def test_failures_keep_tasks_apart_and_name_one_event_counted_twice() -> None:
    run = {"method": "tis", "seed": 0, "rung": 6, "failed": True, "event": "collapse"}
    table = pd.DataFrame(
        [run | {"task": "walk", "staleness": lag, "onset": onset} for lag, onset in ((4, 30.0), (16, 20.0), (64, 20.0))]
        + [run | {"task": "chain", "staleness": 16, "onset": 30.0, "event": "collapse with rebound"}]
    )
    found = failures(table).set_index(["task", "staleness"])
    assert len(found) == 4
    assert found["twins"].tolist() == [0, 1, 1, 0]
    assert found["median_lag"].tolist() == [4, 16, 20, 16], "the lag is that asked for once so many updates are made"
    assert found["before_the_lag"].tolist() == [0, 0, 1, 0]
    assert found["perhaps_before"].tolist() == [0, 1, 0, 0]
    assert found["rebounds"].tolist() == [0, 0, 0, 1]


def test_failures_that_come_early_make_the_horizon_matter_less(runs: pd.DataFrame) -> None:
    runs = runs[(runs["task"] == "walk") & runs["method"].isin(["tis", "clip"])]
    always = horizons(runs)
    assert np.allclose(always["exponent"].dropna(), horizons(runs.assign(onset=10.0))["exponent"].dropna()) is False
    assert np.allclose(horizons(runs.assign(onset=runs["onset"] / 10))["exponent"].dropna(), 0.0)


def test_a_planted_horizon_is_recovered() -> None:
    """The boundary falls by 0.8 rungs per doubling of T, so a run at a rung falls when the boundary has come there."""
    place = {"task": "walk", "method": "tis", "staleness": 16, "lr": 1e-4, "event": "", "final_reward": 0.5}
    rows = []
    for seed in range(8):
        for rung in range(9):
            onset = 2 ** ((9.8 + 0.2 * (seed % 4) - rung) / 0.8)
            rows.append(place | {"seed": seed, "rung": rung, "failed": onset <= 300, "onset": onset})
    found = horizons(pd.DataFrame(rows)).iloc[0]
    assert found["low"] <= 0.8 <= found["high"]
    assert 0.65 < found["exponent"] < 0.95
    assert found["high"] - found["low"] < 0.5
    few = horizons(pd.DataFrame(rows[:36])).iloc[0]
    assert few[["low", "high"]].isna().all(), "four seeds give no interval"


def test_the_level_of_a_method_is_where_its_units_are(runs: pd.DataFrame) -> None:
    bounds = tables.boundaries(runs[(runs["method"] == "vcpo") & (runs["task"] == "walk")])
    table = level_table(bounds).set_index("staleness")
    assert (table["low"] < table["largest_rate"]).all()
    assert table.loc[4, "largest_rate"] > table.loc[16, "largest_rate"] > table.loc[64, "largest_rate"]
    top = level_table(bounds.assign(low=8.0, high=np.inf)).iloc[0]
    assert (top["largest_rate"], top["low"], top["at_top"]) == (np.inf, 6.4e-3, len(SEEDS))


def test_runs_of_another_session_add_up_and_are_not_made_again(runs: pd.DataFrame, tmp_path: Path) -> None:
    table = runs.assign(mean_step_scale=1.0, mean_ess=0.5)
    first, second = table[table["seed"] < 2], table[table["seed"] >= 1].assign(final_reward=9.0)
    assert tables.shipped(tmp_path / "runs.csv").empty
    first.to_csv(tmp_path / "runs.csv", index=False)
    whole = tables.joined(tables.shipped(tmp_path / "runs.csv"), second)
    assert len(whole) == len(table)
    assert (whole.loc[whole["seed"] == 1, "final_reward"] == 9.0).all()
    assert not design.wanted(SEEDS, tables.outcomes(whole))
    assert {unit.seed for unit, _ in design.wanted(SEEDS, tables.outcomes(first))} == {2}
    assert tables.joined(first, pd.DataFrame()).equals(tables.joined(pd.DataFrame(), first))


def test_rates_are_chosen_by_other_seeds(runs: pd.DataFrame) -> None:
    """Noise alone lifts the best of several rates; a rate that others chose is as good as its runs are."""
    random = np.random.default_rng(0)
    place = {"task": "walk", "method": "tis", "failed": False}
    rows = [
        place | {"staleness": lag, "seed": seed, "rung": r} for lag in range(50) for seed in range(4) for r in range(5)
    ]
    noisy = pd.DataFrame(rows).assign(final_reward=0.5 + random.normal(size=len(rows)) * 0.1)
    assert noisy.groupby(["seed", "staleness"])["final_reward"].max().mean() > 0.6
    assert abs(earnings(noisy)["reward"].mean() - 0.5) < 0.03, "0.1 / sqrt(200) is 0.007"
    alive = runs[~runs["failed"]]
    falling = earnings(alive.assign(final_reward=0.9 - 0.05 * alive["rung"]))
    rising = earnings(alive)
    assert (falling["median_rate"] <= rising["median_rate"]).all()
    assert (falling["median_rate"] < rising["median_rate"]).any()
    assert (rising["low"] <= rising["reward"]).all()
    alone = earnings(alive[alive["seed"] == 0])
    assert set(alone["seeds"]) == {0}
