"""The phase study's search finds planted boundaries, and its tables recover what was planted."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from vcpo_bench.records import RULES_VERSION

ROOT = Path(__file__).parents[2]
NAMES = ("boundary", "design", "tables", "checks", "contrasts", "same_rate", "horizons", "failures", "levels")
NAMES += ("earnings", "wording", "picture", "page")
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


def at(runs: pd.DataFrame, unit: Any, rung: int) -> "pd.Series[bool]":
    names = ["seed", "task", "method", "staleness", "rung"]
    return (runs[names] == [unit.seed, unit.task, unit.method, unit.staleness, rung]).all(axis=1)


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
    checks, tables = tools["checks"].checks, tools["tables"]
    drawn, lent = checks(runs).to_dict("records")
    assert 30 <= drawn["runs"] <= 90
    assert (drawn["contradicting"], lent["runs"]) == (0, 0)
    unit, check = next((unit, own.check) for unit, own in tables.own_searches(runs).items() if own.check is not None)
    wrong = runs.copy()
    wrong.loc[at(wrong, unit, check), "failed"] ^= True
    assert checks(wrong).iloc[0]["contradicting"] == 1


def test_runs_that_only_lend_step_sizes_do_not_move_a_boundary(
    tools: dict[str, ModuleType], runs: pd.DataFrame
) -> None:
    tables, design = tools["tables"], tools["design"]
    searches = tables.own_searches(runs).items()
    unit = next(unit for unit, own in searches if unit.seed == 3 and min(own.outcomes) > 1 and own.check is None)
    lent = pd.DataFrame([row(unit, rung, design.LADDER) | {"failed": True, "onset": 50.0} for rung in (0, 1)])
    whole = pd.concat([runs, lent], ignore_index=True)
    assert design.bracket(tables.outcomes(whole)[unit]) == (-1, 0), "all runs together say something else"
    pd.testing.assert_frame_equal(tables.boundaries(whole), tables.boundaries(runs))
    assert not design.wanted(SEEDS, tables.outcomes(whole))
    said = tools["checks"].checks(whole).set_index("kind").loc["lenders of step scales"]
    assert (said["runs"], said["contradicting"]) == (2, 2)


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
    rates = contrasts.rates(runs, bounds)
    assert len(rates) == 6
    assert (rates["reach90"] > 1).all(), "four seeds cannot show that two boundaries are equal"
    assert rates["lender_failed"].sum() < 6, "of 24: VCPO bears what its control does not"
    dead = runs.assign(failed=runs["failed"] | (runs["method"] == "vcpo"))
    assert contrasts.rates(dead, bounds)["lender_failed"].sum() > 6
    assert (rates["low"] < 1).all() and (rates["high"] > 1).all()  # noqa: PT018 - one interval
    assert "equivalent" not in set(rates["verdict"])
    rewards = contrasts.rewards(bounds)
    assert ((rewards["difference"] > 0.02) & (rewards["difference"] < 0.13)).all()
    assert set(rewards["seeds"]) == {4}
    assert (rewards["low"] <= rewards["low90"]).all()
    stalled = contrasts.rewards(bounds.assign(event="stall"))
    for name in ("dented_vcpo", "dented_rival"):
        assert (set(rewards[name]), set(stalled[name])) == ({0}, {4})
    assert set(contrasts.rewards(bounds[bounds["seed"] < 3])["verdict"]) == {"too few pairs"}


def test_the_same_rate_is_compared_where_both_survive(tools: dict[str, ModuleType], runs: pd.DataFrame) -> None:
    matched = tools["contrasts"].MATCHED
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
    found = tools["same_rate"].same_rate(table).iloc[0]
    assert found[["pairs", "both_survive", "only_vcpo", "only_matched"]].tolist() == [8, 6, 1, 1]
    assert found["difference"] == pytest.approx(0.2, abs=0.001)
    assert (found["seeds"], found["verdict"]) == (4, "more")


def test_failures_keep_tasks_apart_and_name_one_event_counted_twice(tools: dict[str, ModuleType]) -> None:
    run = {"method": "tis", "seed": 0, "rung": 6, "failed": True, "event": "collapse"}
    table = pd.DataFrame(
        [run | {"task": "walk", "staleness": lag, "onset": onset} for lag, onset in ((4, 30.0), (16, 20.0), (64, 20.0))]
        + [run | {"task": "chain", "staleness": 16, "onset": 30.0, "event": "collapse with rebound"}]
    )
    found = tools["failures"].failures(table).set_index(["task", "staleness"])
    assert len(found) == 4
    assert found["twins"].tolist() == [0, 1, 1, 0]
    assert found["before_the_lag"].tolist() == [0, 0, 1, 0]
    assert found["perhaps_before"].tolist() == [0, 1, 0, 0]
    assert found["rebounds"].tolist() == [0, 0, 0, 1]


def test_failures_that_come_early_make_the_horizon_matter_less(
    tools: dict[str, ModuleType], runs: pd.DataFrame
) -> None:
    horizons = tools["horizons"].horizons
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
    found = tools["horizons"].horizons(pd.DataFrame(rows)).iloc[0]
    assert found["low"] <= 0.8 <= found["high"]
    assert 0.65 < found["exponent"] < 0.95
    assert found["high"] - found["low"] < 0.5
    few = tools["horizons"].horizons(pd.DataFrame(rows[:36])).iloc[0]
    assert few[["low", "high"]].isna().all(), "four seeds give no interval"


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
    tables, wording = tools["page"].made(runs), tools["wording"]
    levels, said = tables["levels"], wording.answer(tables)
    assert "**refuted** for `clip`" in said
    assert "**holds**" not in said
    assert "against `vcpo(ess=off)` +0.09" in said
    drawn = tables["checks"].iloc[0]["runs"]
    assert said.splitlines()[-1].startswith("**Check.**")
    assert f"Of {drawn} runs at least two rates away from a boundary, drawn at random, 0 contradict" in said
    doubtful = tables["checks"].assign(contradicting=drawn // 5)
    assert wording.answer(tables | {"checks": doubtful}).startswith("**Check.**"), "as registered, above 10%"
    at_ends = tables["exponents"].assign(verdict="at an end of the ladder")
    assert "no exponent, because the ladder ends first, for `clip`" in wording.answer(tables | {"exponents": at_ends})
    above = levels.assign(largest_rate=np.inf, low=6.4e-3)
    assert "| over 6.4e-3 |" in wording.by_lag(above, "largest_rate")
    below = levels.assign(largest_rate=np.nan, high=2.5e-5)
    assert "| under 2.5e-5 |" in wording.by_lag(below, "largest_rate")
    rows = wording.by_lag(levels, "largest_rate").splitlines()
    assert len(rows) == 2 + 2 * 9
    assert rows[0] == "| task | method | lag 0 | lag 4 | lag 16 | lag 64 |"


def test_there_is_a_page_when_four_seeds_are_complete(
    tools: dict[str, ModuleType], runs: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tools["page"]
    more = {"mean_step_scale": 1.0, "mean_ess": 0.5}
    runs[runs["seed"] < 3].assign(**more).to_csv(tmp_path / "runs.csv", index=False)
    page.refresh(tmp_path)
    assert "complete seeds: [0, 1, 2]; at least 4 are needed for a page" in capsys.readouterr().out
    assert not (tmp_path / "README.md").exists()
    runs.assign(**more).to_csv(tmp_path / "runs.csv", index=False)
    page.refresh(tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert f"> **Rules {RULES_VERSION}**" in text
    assert "complete seeds: 4." in text
    assert "{{" not in text
    assert (tmp_path / "boundary.png").stat().st_size > 10_000


def test_the_page_follows_from_the_shipped_runs(tools: dict[str, ModuleType], tmp_path: Path) -> None:
    page, folder = tools["page"], tools["tables"].FOLDER
    shipped = tools["tables"].shipped(folder / "runs.csv")
    if len(tools["tables"].complete(shipped)) < page.LEAST_SEEDS:
        assert not (folder / "README.md").exists(), "a page without the runs it rests on"
        return
    shutil.copy(folder / "runs.csv", tmp_path)
    page.refresh(tmp_path)
    for made in tmp_path.glob("*.[mc][ds]*"):
        assert made.read_text() == (folder / made.name).read_text(), "run: python tools/phase_study/page.py"
