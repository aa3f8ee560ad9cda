"""Facts of the scorecard that rest on tables of other pages: the shipped ones, and ones that say the opposite."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from phase_world import world
from scorecard import markdown
from scorecard.facts import f02_large_lag, f06_recovery, f23_rate_and_lag, f25_speedup_parts
from scorecard.non_inferiority import non_inferiority
from scorecard.places import FOLDER, NON_INFERIORITY
from scorecard.tables import Tables
from scorecard_tables import FACTS, ROOT, Story, even_seed, tables

DOCS = ROOT / "docs"
RATES = (1e-4, 2e-4, 4e-4, 8e-4)
R, F, U, C = "reproduced", "refuted", "undecided", "cannot be tested here"
SECONDS, ASYNC_PAGE, CHAIN_PAGE = 5, "benchmarks/async.md", "benchmarks/prefix_chain.md"
LOW, HIGH, MIXED = "1, 1, 1, 1, 1.1", "99, 99, 99, 99, 98", "1, 99, 1, 99, 8"


def edited(folder: Path, page: str, rows: dict[str, dict[int, str]]) -> Path:
    """A folder of docs with a page whose rows that begin as given have other cells."""
    shutil.copytree(DOCS / Path(page).parent, folder / Path(page).parent, dirs_exist_ok=True)
    lines = (DOCS / page).read_text().splitlines()
    for start, cells in rows.items():
        at = [i for i, line in enumerate(lines) if line.startswith(start)]
        assert at, f"{page} has no row {start}"
        for i in at:
            old = lines[i].strip("|").split("|")
            lines[i] = "|" + "|".join(cells.get(place, cell) for place, cell in enumerate(old)) + "|"
    (folder / page).write_text("\n".join(lines))
    return folder


def verdicts(number: int, docs: Path) -> list[str]:
    return [part.verdict for part in FACTS[number].judge(Tables.empty(docs))]


def test_the_shipped_tables_give_the_verdicts_their_pages_tell() -> None:
    assert verdicts(10, DOCS) == [R, R]
    assert verdicts(11, DOCS) == [F, F]
    assert verdicts(12, DOCS) == [F]
    assert verdicts(13, DOCS) == [U, R, C]
    assert verdicts(25, DOCS)[0] == R


def test_the_prefix_chain_can_say_the_opposite(tmp_path: Path) -> None:
    off = {"| Token IS | inf": {6: " 0.223 / 0.452 "}, "| GeoMean IS | 0.969": {1: " 0.969 / 0.873 "}}
    assert verdicts(10, edited(tmp_path / "off", CHAIN_PAGE, off)) == [F, F]
    small = {"| Seq IS | 8": {5: " 0.123 / 0.211 ± 0.02 "}, "| 8 | 0.123": {1: " 0.123 / 0.2 ± 0.02 "}}
    assert verdicts(11, edited(tmp_path / "noisy", CHAIN_PAGE, small)) == [R, R]
    wide = {"| 8 | 0.123": {1: " 0.123 / 0.5 ± 0.2 "}}
    assert verdicts(11, edited(tmp_path / "wide", CHAIN_PAGE, wide)) == [F, U]


def test_the_simulator_is_right_where_one_share_of_each_cap_is(tmp_path: Path) -> None:
    caps = {f"| {cap} | 0.5": {6: " -12% "} for cap in ("4k", "8k", "16k", "24k")}
    assert verdicts(12, edited(tmp_path, ASYNC_PAGE, caps)) == [R]


@pytest.mark.parametrize(("seconds", "said"), [(HIGH, R), (LOW, F), (MIXED, U)])
def test_time_to_target_goes_either_way(tmp_path: Path, seconds: str, said: str) -> None:
    rows = {f"| vcpo, {task} | async, k = 4": {SECONDS: f" {seconds} "} for task in ("chain", "walk-eos")}
    docs = edited(tmp_path, ASYNC_PAGE, rows)
    fact = FACTS[14]
    tau = {R: lambda c: 20 + c.staleness, F: lambda c: 150 - c.staleness}
    unclear = lambda c: tau[R](c) if even_seed(c) else tau[F](c)  # noqa: E731 - one of three
    world = tables(fact.blocks, lambda c: Story(tau=tau.get(said, unclear)(c)), docs)
    assert [part.verdict for part in fact.judge(world)] == [said] * 3


def test_a_speed_up_that_is_not_the_product_of_its_parts_is_refuted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    equal = {2: " 10, 10, 10, 10, 10 ", 4: " 100, 100, 100, 100, 100 ", 5: " 10, 10, 10, 10, 10 "}
    for seconds, said in (("5, 5, 5, 5, 5", R), ("9, 9, 9, 9, 9", F), ("3, 9, 3, 9, 5", U)):
        rows = {}
        for task in ("chain", "walk-eos"):
            rows[f"| vcpo, {task} | (a)"] = {1: " (a) split synchronous ", 2: equal[2], 4: equal[4], 5: equal[5]}
            rows[f"| vcpo, {task} | async, k = 4"] = {2: " 20, 20, 20, 20, 20 ", 4: equal[4], 5: f" {seconds} "}
        assert verdicts(25, edited(tmp_path / said, ASYNC_PAGE, rows)) == [R, said, said]
    monkeypatch.setattr(f25_speedup_parts, "PUBLISHED", (2.49, 1.36, 1.82))
    assert verdicts(25, DOCS)[0] == F


def test_exponents_of_the_phase_study_are_judged_when_they_are_there(tmp_path: Path) -> None:
    fact = FACTS[23]
    absent = fact.parts(Tables.empty(tmp_path))
    assert [part.verdict for part in absent] == ["not run"]
    table = tmp_path / "studies" / "phase"
    table.mkdir(parents=True)
    rows = ["walk,tis,0.6,0.5,0.7", "chain,tis,1,0.8,1.2", "walk,clip,1,0.5,1.4", "chain,clip,,,", "walk,vcpo,1,1,1"]
    lines = [f"{one.split(',')[0]},{one.split(',')[1]},reached,{','.join(one.split(',')[2:])}" for one in rows]
    (table / "exponents.csv").write_text("\n".join(["task,method,lag,exponent,low,high", *lines]))
    assert [part.verdict for part in fact.parts(Tables.empty(tmp_path))] == ["not run"], "runs.csv is missing"
    runs = world()
    begun = runs[(runs["seed"] == 3) & (runs["method"] == "tis")]
    pd.concat([runs[runs["seed"] < 3], begun]).to_csv(table / "runs.csv", index=False)
    found = fact.parts(Tables.empty(tmp_path))
    assert [part.verdict for part in found[:4]] == [F, R, U, U]
    assert [part.name for part in found[4:6]] == ["constant dose, tis on walk", "constant dose, tis on chain"]
    assert len(found) == 8
    whole = f23_rate_and_lag._constant("walk", "tis", f23_rate_and_lag.dose_table(runs[runs["seed"] < 3]))
    assert found[4].figure == whole.figure, "a seed whose searches have not ended does not count"


def test_an_exponent_beyond_those_searched_is_judged_by_its_interval() -> None:
    row = {"task": "walk", "method": "tis", "exponent": np.nan, "low": 2.1, "high": np.inf}
    part = f23_rate_and_lag._exponent(row)
    assert (part.verdict, part.figure) == (F, "exponent beyond what was searched [2.1, inf]")
    assert f23_rate_and_lag._exponent(row | {"low": -np.inf}).verdict == U


def phase_runs(onset: Callable[[float], float], seeds: int = 5, rates: tuple[float, ...] = RATES) -> pd.DataFrame:
    """Failed runs of TIS on walk at lag 1, whose reached lag is always 1, with this onset in units of 10 updates."""
    each = [(seed, lr, 10 * onset(lr) * (1 + 0.01 * seed)) for seed in range(seeds) for lr in rates]
    table = pd.DataFrame(each, columns=["seed", "lr", "onset"])
    return table.assign(task="walk", method="tis", staleness=1, failed=True, event="collapse")


@pytest.mark.parametrize(
    ("onset", "said"),
    [(lambda lr: 1e-3 / lr, R), (lambda lr: 3.0, F), (lambda lr: 1e-3 / lr * (lr / 1e-4) ** 0.25, U)],
)
def test_a_dose_is_constant_or_not(onset: Callable[[float], float], said: str) -> None:
    runs = phase_runs(onset)
    runs["onset"] *= (runs["lr"] / RATES[0]) ** (0.02 * (runs["seed"] - 2))
    part = f23_rate_and_lag._constant("walk", "tis", f23_rate_and_lag.dose_table(runs))
    assert part.verdict == said, part.figure


def test_the_dose_of_failed_runs_with_a_lag() -> None:
    runs = phase_runs(lambda lr: 3.0, seeds=4)
    runs.loc[0, ["staleness", "onset"]] = (16, 30.0)
    runs.loc[1, ["staleness", "onset"]] = (64, 30.0)
    runs.loc[2, "staleness"] = 0
    runs.loc[3, "failed"] = False
    found = f23_rate_and_lag.dose_table(runs)
    assert found["dose"].tolist()[:2] == pytest.approx([30 * 16 * RATES[0], 30 * 30 * RATES[1]])
    assert not {2, 3} & set(found.index)
    part = f23_rate_and_lag._constant("walk", "tis", found)
    assert (part.verdict, part.figure) == (U, "seeds with enough failed runs: 3; 4 are needed")


def test_a_rebound_seen_elsewhere_is_said_and_judges_nothing(tmp_path: Path) -> None:
    assert f06_recovery.elsewhere(Tables.empty(tmp_path), "walk") == ""
    table = tmp_path / "studies" / "phase"
    table.mkdir(parents=True)
    runs = world()
    walk = runs["failed"] & (runs["task"] == "walk") & (runs["seed"] < 3)
    here = (runs["staleness"] == 16) & np.isclose(runs["lr"], 8e-4)
    assert (walk & here).any()
    tis = runs.index[walk & ~here & (runs["method"] == "tis")]
    runs.loc[[*tis[:2], runs.index[walk & here][0]], "event"] = "collapse with rebound"
    begun = runs["failed"] & (runs["seed"] == 3) & (runs["method"] == "tis")
    runs.loc[begun, "event"] = "collapse with rebound"
    runs[(runs["seed"] < 3) | begun].to_csv(table / "runs.csv", index=False)
    said = f06_recovery.elsewhere(Tables.empty(tmp_path), "walk")
    assert f"2 of {(walk & ~here).sum()} failed runs on walk rebounded by update 300, 2 of them `tis`" in said
    first = runs.loc[tis[0]]
    assert f"(such as lag {first['staleness']}, learning rate {first['lr']:g}, seed 0)" in said
    assert "rates, 0 of " in f06_recovery.elsewhere(Tables.empty(tmp_path), "chain")
    fact = FACTS[6]
    parts = [fact.judge(tables(fact.blocks, lambda _: Story(fall=100), docs)) for docs in (tmp_path, tmp_path / "none")]
    assert [[part.verdict for part in one] for one in parts] == [[F, F]] * 2
    assert parts[0][0].figure == parts[1][0].figure + said


def test_a_table_that_moved_is_an_error_and_not_a_verdict(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Head\n\ntext\n")
    with pytest.raises(ValueError, match="no table below"):
        markdown.table(page, "# Head")
    with pytest.raises(ValueError, match="no line"):
        markdown.table(page, "# Other")


def test_time_to_non_inferiority_follows_from_the_shipped_evaluations() -> None:
    made = non_inferiority(Tables.read(FOLDER, DOCS))
    assert made.to_csv(index=False, float_format="%.6g") == NON_INFERIORITY.read_text(), "run: tools/scorecard/page.py"
    curve = pd.DataFrame({"step": [0, 10, 20, 30], "sampled_reward": [0.1, 0.5, 0.3, 0.5]})
    assert f02_large_lag.arrival(curve, 0.4) == 20.0
    assert math.isnan(f02_large_lag.arrival(curve, 0.45))
