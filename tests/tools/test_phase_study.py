"""The phase study's search finds planted boundaries, and its tables recover what was planted."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
NAMES = ("boundary", "design", "tables", "contrasts", "levels", "earnings", "wording")
SEEDS = range(4)


@pytest.fixture(scope="module")
def tools() -> Iterator[dict[str, ModuleType]]:
    folder = str(ROOT / "tools" / "phase_study")
    sys.path.insert(0, folder)
    yield {name: __import__(name) for name in NAMES}
    sys.path.remove(folder)
    for name in NAMES:
        sys.modules.pop(name, None)


def planted(unit: Any) -> float:
    """Boundary in rungs: falls as lag^-0.5; VCPO bears twice the rate of its matched control; one seed is weaker."""
    start = {"vcpo": 7.3, "vcpo(ess=off)+lr-matched": 6.3}.get(unit.method, 5.8)
    return start - 0.5 * np.log2(unit.staleness + 1) + unit.draws().normal() * 0.2


def row(unit: Any, rung: int, ladder: tuple[float, ...]) -> dict[str, Any]:
    failed = rung > planted(unit)
    place = {"seed": unit.seed, "task": unit.task, "method": unit.method, "staleness": unit.staleness}
    facts = {"rung": rung, "lr": ladder[rung], "event": "collapse" if failed else "healthy", "failed": failed}
    reward = 0.0 if failed else 0.5 + 0.05 * rung
    return place | facts | {"onset": 100.0 if failed else np.nan, "final_reward": reward}


@pytest.fixture(scope="module")
def runs(tools: dict[str, ModuleType]) -> pd.DataFrame:
    design, rows = tools["design"], []
    found: dict[Any, dict[int, bool]] = {}
    while wanted := design.wanted(SEEDS, found):
        for unit, rung in wanted:
            rows.append(row(unit, rung, design.LADDER))
            found.setdefault(unit, {})[rung] = rows[-1]["failed"]
    return pd.DataFrame(rows)


def test_every_search_ends_at_its_boundary(tools: dict[str, ModuleType], runs: pd.DataFrame) -> None:
    design, tables = tools["design"], tools["tables"]
    found = tables.outcomes(runs)
    assert len(found) == len(SEEDS) * len(design.units(0)) == 4 * 58
    for unit, ended in found.items():
        low, high = design.bracket(ended)
        assert high - low == 1
        assert low < planted(unit) < high or high == len(design.LADDER)
    assert tables.complete(runs) == list(SEEDS)
    assert tables.complete(runs[(runs["seed"] < 2) | (runs["task"] == "walk")]) == [0, 1]


def test_later_seeds_begin_where_earlier_ones_ended(tools: dict[str, ModuleType], runs: pd.DataFrame) -> None:
    per_seed = runs.groupby("seed").size()
    assert per_seed[3] < per_seed[0]
    assert per_seed.sum() < 0.45 * len(SEEDS) * 58 * len(tools["design"].LADDER), "that is no search"


def test_checks_are_counted_and_contradictions_found(tools: dict[str, ModuleType], runs: pd.DataFrame) -> None:
    tables = tools["tables"]
    counted = tables.checks(runs).iloc[0]
    assert 30 <= counted["checks"] <= 90
    assert counted["contradicting"] == 0
    unit, _, check = next(each for each in tables.searches(runs) if each[2] is not None)
    wrong = runs.copy()
    same = (
        wrong[["seed", "task", "method", "staleness", "rung"]]
        == [unit.seed, unit.task, unit.method, unit.staleness, check]
    ).all(axis=1)
    wrong.loc[same, "failed"] = ~wrong.loc[same, "failed"]
    assert tables.checks(wrong).iloc[0]["contradicting"] == 1


def test_the_exponent_is_recovered_and_the_law_of_one_refuted(tools: dict[str, ModuleType], runs: pd.DataFrame) -> None:
    tables = tools["tables"]
    bounds = tables.boundaries(runs[(runs["method"] == "tis") & (runs["task"] == "walk")])
    found = tables.exponents(bounds).set_index(["task", "method", "lag"])
    one = found.loc[("walk", "tis", "asked")]
    truth = 0.5 * (np.log2(65) - np.log2(5)) / 4
    assert one["low"] < truth < one["high"] < 0.75
    assert one["verdict"] == "refuted"
    at_top = bounds.assign(low=8.0, high=np.inf)
    assert set(tables.exponents(at_top)["verdict"]) == {"at an end of the ladder"}


def test_paired_differences_are_recovered(tools: dict[str, ModuleType], runs: pd.DataFrame) -> None:
    bounds, contrasts = tools["tables"].boundaries(runs), tools["contrasts"]
    rates = contrasts.rates(bounds)
    assert len(rates) == 6
    assert (rates["low"] < 1).all() and (rates["high"] > 1).all()  # noqa: PT018 - one interval
    assert "equivalent" not in set(rates["verdict"])
    rewards = contrasts.rewards(bounds)
    assert ((rewards["difference"] > 0.02) & (rewards["difference"] < 0.13)).all()
    assert set(rewards["seeds"]) == {4}


def test_failures_that_come_early_make_the_horizon_matter_less(
    tools: dict[str, ModuleType], runs: pd.DataFrame
) -> None:
    horizons = tools["contrasts"].horizons
    runs = runs[(runs["task"] == "walk") & runs["method"].isin(["tis", "clip"])]
    always = horizons(runs)
    assert np.allclose(always["exponent"].dropna(), horizons(runs.assign(onset=10.0))["exponent"].dropna()) is False
    assert np.allclose(horizons(runs.assign(onset=runs["onset"] / 10))["exponent"].dropna(), 0.0)


def test_a_planted_horizon_is_recovered(tools: dict[str, ModuleType]) -> None:
    """The boundary falls by 0.8 rungs per doubling of T, so a run at a rung falls when the boundary has come there."""
    place = {"task": "walk", "method": "tis", "staleness": 16, "lr": 1e-4, "event": "", "final_reward": 0.5}
    rows = []
    for seed in range(8):
        for rung in range(9):
            onset = 2 ** ((9.8 + 0.2 * (seed % 4) - rung) / 0.8)
            rows.append(place | {"seed": seed, "rung": rung, "failed": onset <= 300, "onset": onset})
    found = tools["contrasts"].horizons(pd.DataFrame(rows)).iloc[0]
    assert found["low"] <= 0.8 <= found["high"]
    assert 0.65 < found["exponent"] < 0.95
    assert found["high"] - found["low"] < 0.5


def test_the_interval_covers_as_it_says(tools: dict[str, ModuleType]) -> None:
    random, covered = np.random.default_rng(0), 0
    x = np.repeat(np.log2([4.0, 16.0, 64.0]), 4)
    for _ in range(40):
        low = np.floor(6.2 - 0.8 * x + random.normal(size=x.size) * 0.6)
        found = tools["boundary"].estimate(low, low + 1, -x, np.arange(-0.5, 2.01, 0.1))
        covered += found.low <= 0.8 <= found.high
    assert covered >= 34, "95% of 40 less four standard errors"


def test_the_level_of_a_method_is_where_its_units_are(tools: dict[str, ModuleType], runs: pd.DataFrame) -> None:
    bounds = tools["tables"].boundaries(runs[(runs["method"] == "vcpo") & (runs["task"] == "walk")])
    table = tools["levels"].level_table(bounds).set_index("staleness")
    assert (table["low"] < table["largest_rate"]).all()
    assert table.loc[4, "largest_rate"] > table.loc[16, "largest_rate"] > table.loc[64, "largest_rate"]
    top = tools["levels"].level_table(bounds.assign(low=8.0, high=np.inf)).iloc[0]
    assert (top["largest_rate"], top["low"], top["at_top"]) == (np.inf, 6.4e-3, len(SEEDS))


def test_runs_of_another_session_add_up_and_are_not_made_again(
    tools: dict[str, ModuleType], runs: pd.DataFrame, tmp_path: Path
) -> None:
    tables, design = tools["tables"], tools["design"]
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


def test_rates_are_chosen_by_other_seeds(tools: dict[str, ModuleType], runs: pd.DataFrame) -> None:
    """Noise alone lifts the best of several rates; a rate that others chose is as good as its runs are."""
    earnings, random = tools["earnings"].earnings, np.random.default_rng(0)
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


def test_the_page_says_what_was_planted(tools: dict[str, ModuleType], runs: pd.DataFrame) -> None:
    bounds, wording = tools["tables"].boundaries(runs), tools["wording"]
    tables = {"exponents": tools["tables"].exponents(bounds), "checks": tools["tables"].checks(runs)}
    contrasts, levels = tools["contrasts"], tools["levels"].level_table(bounds)
    tables |= {"rates": contrasts.rates(bounds), "rewards": contrasts.rewards(bounds)}
    tables |= {"horizons": contrasts.horizons(runs)}
    said = wording.answer(tables)
    assert "**refuted** for `clip`" in said
    assert "**holds**" not in said
    assert "against `vcpo(ess=off)` +0.09" in said
    assert f"0 of {tables['checks'].iloc[0]['checks']:.0f} runs far from a boundary contradict it" in said
    at_ends = tables["exponents"].assign(verdict="at an end of the ladder")
    assert "no exponent, because the ladder ends first, for `clip`" in wording.answer(tables | {"exponents": at_ends})
    above = levels.assign(largest_rate=np.inf, low=6.4e-3)
    assert "| over 6.4e-3 |" in wording.by_lag(above, "largest_rate")
    below = levels.assign(largest_rate=np.nan, high=2.5e-5)
    assert "| under 2.5e-5 |" in wording.by_lag(below, "largest_rate")
    rows = wording.by_lag(levels, "largest_rate").splitlines()
    assert len(rows) == 2 + 2 * 9
    assert rows[0] == "| task | method | lag 0 | lag 4 | lag 16 | lag 64 |"
