"""The page of the phase study says what was planted, and follows from the runs that ship."""

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_pages import assert_alike
from phase_study import earlier, page, picture, wording
from phase_study.design import METHODS
from phase_study.tables import FOLDER, RUNS, complete, shipped
from phase_world import world

from vcpo_bench.records import RULES_VERSION


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return world()


@pytest.fixture(scope="module")
def tables(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return page.made(runs)


def test_the_page_says_what_was_planted(tables: dict[str, pd.DataFrame]) -> None:
    levels, said = tables["levels"], wording.answer(tables)
    assert "**refuted** for `clip`" in said
    assert "**holds**" not in said
    assert "against `vcpo(ess=off)` 0.09 [" in said
    drawn = tables["checks"].iloc[0]["runs"]
    assert "**Check.**" in said.split("\n\n")[-2]
    drawn_at = f"- {drawn} runs made at least two rates away from a boundary, drawn at random: 0 against the boundary"
    assert said.splitlines()[-1].startswith(drawn_at)
    both = pd.concat([tables["checks"].iloc[[0]].assign(runs=1), tables["checks"].iloc[[1]].assign(runs=7)])
    lines = wording.answer(tables | {"checks": both}).splitlines()[-2:]
    assert [line[:7] for line in lines] == ["- 1 run", "- 7 run"], "one line each"
    doubtful = tables["checks"].assign(contradicting=drawn // 5)
    assert wording.answer(tables | {"checks": doubtful}).startswith("**Check.**"), "as registered, above 10%"
    at_ends = tables["exponents"].assign(verdict="at an end of the ladder")
    assert "no exponent, because the ladder ends first, for `clip`" in wording.answer(tables | {"exponents": at_ends})
    above = levels.assign(largest_rate=np.inf, low=6.4e-3)
    assert "| over 6.4e-3 |" in wording.by_lag(above, "largest_rate")
    below = levels.assign(largest_rate=np.nan, low=np.nan, high=2.5e-5)
    assert "| under 2.5e-5 |" in wording.by_lag(below, "largest_rate")
    half = levels.assign(largest_rate=1e-4, low=0.0, high=np.inf)
    assert "| 1e-4 [open, open] |" in wording.by_lag(half, "largest_rate")
    rows = wording.by_lag(levels, "largest_rate").splitlines()
    assert len(rows) == 2 + 2 * 9
    assert rows[0] == "| task | method | lag 0 | lag 4 | lag 16 | lag 64 |"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"difference": 1.5, "low": 0.575, "high": 2.42}, "lag 16: 2.83 times [1.49, 5.35] (**more**)"),
        ({"difference": np.nan, "low": 2.88, "high": np.inf}, "lag 16: over 7.36 times (**more**)"),
        ({"difference": np.nan, "low": -np.inf, "high": -1.0}, "lag 16: under 0.50 times (**more**)"),
        ({"difference": 0.0, "low": -np.inf, "high": np.inf}, "lag 16: 1.00 times [open, open] (**more**)"),
        ({"verdict": "too few pairs", "difference": 1.0}, "lag 16: too few pairs"),
        ({"verdict": "both at an end of the ladder"}, "lag 16: both lie beyond the ladder"),
    ],
)
def test_a_ratio_says_where_the_ladder_cuts_it_off(row: dict[str, object], said: str) -> None:
    table = pd.DataFrame([{"task": "walk", "staleness": 16, "verdict": "more"} | row] * 2)
    assert wording.ratios(table, "walk") == f"{said}; {said}"


def test_equivalence_out_of_reach_is_said(tables: dict[str, pd.DataFrame]) -> None:
    rates = tables["rates"]
    assert wording.reach(rates) in wording.answer(tables)
    assert "in all 4 seeds, the 90% interval would reach a factor of 1.91 either way: *equi" in wording.reach(rates)
    assert wording.reach(rates).endswith("within a factor of 1.41, is out of reach here.")
    assert "out of reach" not in wording.reach(rates.assign(reach90=0.4))


def test_a_horizon_is_answered_from_eight_seeds_on(tables: dict[str, pd.DataFrame]) -> None:
    few = tables["horizons"]
    assert "`walk`: not answered: 4 seeds give no interval; estimates are in the table below." in wording.answer(tables)
    enough = few.assign(seeds=8, exponent=-0.001, low=-0.01, high=0.004)
    assert "`tis` 0.00 [-0.01, 0.00]" in wording._horizons(enough, "walk")
    assert "ladder ends first" in wording._horizons(few.assign(exponent=np.nan), "walk")


def test_small_differences_have_no_sign(tables: dict[str, pd.DataFrame]) -> None:
    small = {"difference": -0.0001, "low": -0.0004, "high": 0.0002, "verdict": "equivalent"}
    said = wording.answer(tables | {name: tables[name].assign(**small) for name in ("rewards", "same_rate")})
    assert "0.00 [0.00, 0.00] at lag 4 (**equivalent**)" in said
    assert "-0.00" not in said


def test_verdicts_are_counted_and_ends_named(tables: dict[str, pd.DataFrame]) -> None:
    told = sum(table.get("verdict", pd.Series()).isin(wording.VERDICTS).sum() for table in tables.values())
    assert 50 <= told <= 60
    assert wording.counted_verdicts(tables).startswith(f"{told} verdicts stand below; ")
    untold = tables["rewards"].assign(verdict="too few pairs")
    assert wording.counted_verdicts(tables | {"rewards": untold}).startswith(f"{told - 12} verdicts")
    inside = tables["levels"].assign(at_top=0, at_bottom=0)
    assert wording.ends(inside) == "No unit lies beyond the ladder.\n"
    inside.loc[3, "at_bottom"] = 2
    assert len(wording.ends(inside).splitlines()) == 3


def test_the_picture_marks_what_lies_beyond_the_ladder(tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    levels = tables["levels"]
    picture.draw(levels, tmp_path / "known.png")
    lag_16 = (levels["staleness"] == 16) & (levels["method"] == "tis")
    for name, facts in {
        "under": {"largest_rate": np.nan, "low": np.nan, "high": 2.5e-5},
        "over": {"largest_rate": np.inf, "low": 6.4e-3, "high": np.inf},
        "open": {"low": 0.0},
    }.items():
        changed = levels.copy()
        changed.loc[lag_16, list(facts)] = list(facts.values())
        picture.draw(changed, tmp_path / f"{name}.png")
    assert len({path.read_bytes() for path in tmp_path.glob("*.png")}) == 4, "each is drawn in its own way"


def test_there_is_a_page_when_four_seeds_are_complete(
    runs: pd.DataFrame,
    tables: dict[str, pd.DataFrame],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs[runs["seed"] < 3].to_csv(tmp_path / "runs.csv", index=False)
    page.refresh(tmp_path)
    assert "complete seeds: [0, 1, 2]; at least 4 are needed for a page" in capsys.readouterr().out
    assert not (tmp_path / "README.md").exists()
    made: list[list[int]] = []
    monkeypatch.setattr(page, "made", lambda table: made.append(table["seed"].unique().tolist()) or tables)
    pd.concat([runs, runs[runs["seed"] == 3].head(1).assign(seed=4)]).to_csv(tmp_path / "runs.csv", index=False)
    page.refresh(tmp_path)
    assert made == [[0, 1, 2, 3], [*range(8)]], "the fifth seed has only begun; the earlier page had eight"
    text = (tmp_path / "README.md").read_text()
    assert f"> **Rules {RULES_VERSION}**" in text
    assert "complete seeds: 4." in text
    assert "{{" not in text
    image = re.search(r"!\[(.*?)\]\(boundary\.png\)", text, re.DOTALL)
    assert image
    left_out = set(METHODS) - set(picture._SHOWN)
    assert all(name in image[1] for name in left_out)
    assert (tmp_path / "boundary.png").stat().st_size > 10_000


def test_the_page_follows_from_the_shipped_runs(tmp_path: Path) -> None:
    if len(complete(shipped(RUNS))) < page.LEAST_SEEDS:
        assert not (FOLDER / "README.md").exists(), "a page without the runs it rests on"
        return
    shutil.copy(RUNS, tmp_path)
    (tmp_path / "second").mkdir()
    shutil.copy(FOLDER / "second" / "answers.csv", tmp_path / "second")
    page.refresh(tmp_path)
    for made in tmp_path.glob("*.[mc][ds]*"):
        assert_alike(made, FOLDER / made.name, "python tools/phase_study/page.py")


def test_verdicts_of_the_earlier_runs_are_told_where_they_differ(
    runs: pd.DataFrame, tables: dict[str, pd.DataFrame]
) -> None:
    assert earlier.moved(tables, tables).empty
    law = tables["exponents"]
    row = {"exponent": 1.0, "low": 0.9, "high": 1.1, "verdict": "holds"}
    other = law.assign(**{name: law[name].where(law.index != 0, value) for name, value in row.items()})
    told = earlier.moved({**tables, "exponents": other}, tables)
    assert told["where"].tolist() == [", ".join(law.loc[0, ["task", "method", "lag"]])]
    assert told["now"].tolist() == ["1.00 [0.90, 1.10] holds"]
    again = runs.assign(failed=runs["failed"] ^ (runs.index == runs.index[0]), final_reward=0.5)
    said = earlier.agreement(again, runs, range(2))
    some = int(runs["seed"].isin(range(2)).sum())
    assert f"{some} runs instead of {some}, {some} of them at the same rate; of these {some - 1} met" in said
