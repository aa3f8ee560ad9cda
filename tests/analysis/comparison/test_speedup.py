"""Times against synchronous training: ratios by hand, paired seeds, and nothing where nothing can be compared."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.commands.compare import analyze_compare
from vcpo_bench.analysis.comparison.effect_sentences import speedup
from vcpo_bench.analysis.comparison.normalized_rewards import NormalizedRewards
from vcpo_bench.analysis.comparison.speedup import SHARES, speedup_table
from vcpo_bench.analysis.findings import Findings, agreeing
from vcpo_bench.analysis.results import load

SYNC, LATE = (40.0, 50.0, 60.0) * 2, (80.0, 100.0, 120.0) * 2


def cell(method: str, lag: int, seed: int, regime: int = 0) -> dict[str, Any]:
    return {
        "key": f"{method}-{lag}-{seed}-{regime}",
        "task": "chain",
        "method": method,
        "staleness": lag,
        "seed": seed,
        "lr": 3e-4,
    }


def scene(
    sync: tuple[float, ...] = SYNC, late: tuple[float, ...] = LATE, arrived: bool = True, regimes: int = 1
) -> pd.DataFrame:
    """`regimes`: under how many regimes the synchronous runs were made, with the same times."""
    cells = [cell("reinforce", 0, seed, regime) for regime in range(regimes) for seed in range(len(sync))]
    cells += [cell("vcpo", 16, seed) for seed in range(len(late))]
    updates = [*sync * regimes, *late]
    times = [
        {"key": one["key"], "target": 0.9, "reached": arrived or one["staleness"] > 0, "updates": at}
        | {"seconds": at / 10, "budget": 300, "trajectories": 128 * at}
        for one, at in zip(cells, updates, strict=True)
    ]
    anchor = {"task": "chain", "start": 0.3, "sync": 0.9, "sync_method": "reinforce", "sync_lr": 3e-4, "usable": True}
    table = pd.DataFrame(cells)
    rewards = NormalizedRewards(table, pd.DataFrame([anchor]))
    return speedup_table(pd.DataFrame(times), table[table["staleness"] > 0], rewards)


def test_half_as_soon_is_a_ratio_of_one_half_and_pairs_leave_no_doubt() -> None:
    row = scene().iloc[0]
    assert row["updates_ratio"] == row["seconds_ratio"] == 0.5
    assert row["updates_ratio_low"] == row["updates_ratio_high"] == 0.5, "every seed takes twice as long"
    assert (row["updates"], row["trajectories"], row["seconds"]) == (100, 12800, 10)
    assert (row["reached"], row["total"], row["sync_reached"], row["sync_total"]) == (6, 6, 6, 6)


def test_of_two_that_take_the_whole_budget_the_one_that_arrives_is_named() -> None:
    """`clip` never arrives; `vcpo` does at the last update, so that both take as long."""
    late = scene(late=(300.0, 300.0, 300.0))
    never = late.assign(method="clip", reached=0)
    cells = pd.DataFrame({"key": ["one"], "task": ["chain"], "staleness": [16]})
    table = pd.concat([never, late], ignore_index=True)
    found = Findings({"non_inferiority": table}, {"non_inferiority": agreeing(cells, "task", "staleness")})
    (said,) = [finding.text for finding in speedup(found)]
    assert said.startswith("chain, lag 16: vcpo reaches 90% of the synchronous gain in 3 of 3 runs")
    nobody = Findings({"non_inferiority": never}, found.cells_behind)
    (said,) = [finding.text for finding in speedup(nobody)]
    assert said == "chain, lag 16: no run reaches 90% of the synchronous gain in time."


def test_other_seeds_are_drawn_apart() -> None:
    row = scene(late=(*LATE, 100.0)).iloc[0]
    assert row["updates_ratio"] == 0.5
    assert row["updates_ratio_low"] < 0.5 < row["updates_ratio_high"]


def test_a_seed_under_two_regimes_is_one_seed() -> None:
    row = scene(regimes=2).iloc[0]
    assert row["updates_ratio_low"] == row["updates_ratio"] == row["updates_ratio_high"] == 0.5
    assert row["sync_total"] == 12


def test_seconds_that_were_not_recorded_have_no_ratio() -> None:
    row = scene(sync=(0.0,) * 6, late=(0.0,) * 6).iloc[0]
    assert np.isnan(row[["seconds_ratio", "seconds_ratio_low", "seconds_ratio_high"]].astype(float)).all()


def test_a_seed_whose_time_is_unknown_is_left_out() -> None:
    row = scene(sync=(*SYNC, 90.0), late=(*LATE, np.nan)).iloc[0]
    assert row["seconds_ratio"] == pytest.approx((sum(SYNC) + 90) / 7 / 100)
    assert row["seconds_ratio_low"] < row["seconds_ratio"] < row["seconds_ratio_high"]
    row = scene(sync=(np.nan,) * 6).iloc[0]
    assert np.isnan(row["seconds_ratio"])


def test_five_seeds_have_no_interval() -> None:
    row = scene(sync=SYNC[:5], late=tuple(2 * one for one in SYNC[:5])).iloc[0]
    assert row["updates_ratio"] == 0.5
    assert np.isnan(row["updates_ratio_low"])


def test_nothing_is_compared_with_synchronous_runs_that_do_not_arrive() -> None:
    assert scene(arrived=False).empty


@pytest.fixture
def tables(tmp_path: Any, make_results: Any) -> dict[str, pd.DataFrame]:
    folder = make_results(
        tmp_path, methods=("vcpo", "tis"), lags=(16,), steps=400, shapes={"tis": "collapsed"}, seeds=range(6)
    )
    return analyze_compare(load(folder), replications=20).tables


def test_a_method_that_collapses_is_never_sooner(tables: dict[str, pd.DataFrame]) -> None:
    table = tables["speedup"].set_index(["method", "share"])
    assert set(table.loc["vcpo"].index) <= set(SHARES)
    assert table.loc[("tis", 0.9), "reached"] == 0
    assert table.loc[("tis", 0.9), "updates"] == 400, "the whole budget"
    assert table.loc[("tis", 0.9), "updates_ratio"] < 1
    np.testing.assert_allclose(table["trajectories"], 16 * 8 * table["updates"], err_msg="prompts times responses")
    assert (table["updates_ratio_low"] <= table["updates_ratio"]).all()
    assert set(tables["non_inferiority"]["share"]) == {0.9, 0.95}
