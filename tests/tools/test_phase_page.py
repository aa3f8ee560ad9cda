"""The page of the phase study says what was planted, and follows from the runs that ship."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_pages import assert_alike
from phase_study import page, wording
from phase_study.tables import FOLDER, RUNS, complete, shipped
from phase_world import world

from vcpo_bench.records import RULES_VERSION


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return world()


def test_the_page_says_what_was_planted(runs: pd.DataFrame) -> None:
    tables = page.made(runs)
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
    runs: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_the_page_follows_from_the_shipped_runs(tmp_path: Path) -> None:
    if len(complete(shipped(RUNS))) < page.LEAST_SEEDS:
        assert not (FOLDER / "README.md").exists(), "a page without the runs it rests on"
        return
    shutil.copy(RUNS, tmp_path)
    page.refresh(tmp_path)
    for made in tmp_path.glob("*.[mc][ds]*"):
        assert_alike(made, FOLDER / made.name, "python tools/phase_study/page.py")
