"""The README leads with the phase study once that has a page, and its numbers are those of the study's tables."""

from pathlib import Path

import pandas as pd
import pytest
from phase_study import wording
from phase_study.contrasts import OPOB_ALONE
from phase_study.design import LAGS, TASKS
from phase_study.tables import FOLDER

from vcpo_bench.analysis.wording import with_interval

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
FINDINGS = " ".join(TEXT.split("## What came out so far")[1].split("\n## ")[0].split())
published = pytest.mark.skipif(not (FOLDER / "README.md").exists(), reason="the phase study has no page yet")


def law(exponents: pd.DataFrame) -> list[str]:
    """What the README says of the exponents: for how many methods the law holds, and the exponent of TIS."""
    asked = exponents[exponents["lag"] == "asked"]
    said = []
    for task in TASKS:
        own = asked[asked["task"] == task].set_index("method")
        counts = [(own["verdict"] == verdict).sum() for verdict in ("refuted", "holds")]
        tis = with_interval(*own.loc["tis", ["exponent", "low", "high"]])
        said.append(f"on `{task}` it is refuted for {counts[0]} of {len(own)} methods and holds for {counts[1]}")
        said.append(f"`tis` falls as S to the minus {tis} on `{task}`")
    return said


def ratios(rates: pd.DataFrame) -> list[str]:
    """What it says of VCPO beside a constant step of the same mean: every lag, so that none is chosen."""
    return [f"on `{task}` {wording._ratios(rates, task)}" for task in TASKS]


def gains(rewards: pd.DataFrame) -> list[str]:
    """What it says of final rewards at each method's own largest surviving rate: how many of the contrasts say what."""
    said = []
    for rival in ("tis", OPOB_ALONE):
        verdicts = rewards.loc[rewards["against"] == rival, "verdict"].value_counts()
        each = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.sort_index().items())
        said.append(f"against `{rival}` {each} (of {len(TASKS) * len(LAGS)})")
    return said


def size(exponents: pd.DataFrame) -> str:
    """How many seeds the study has."""
    return f"{exponents['units'].max() // len(LAGS)} seeds"


@published
@pytest.mark.parametrize(("table", "words"), [("exponents", law), ("rates", ratios), ("rewards", gains)])
def test_every_number_is_in_its_table(table: str, words: object) -> None:
    assert callable(words)
    for said in words(pd.read_csv(FOLDER / f"{table}.csv")):
        assert said in FINDINGS, said


@published
def test_the_phase_study_comes_first_with_its_picture() -> None:
    assert FINDINGS.index("docs/studies/phase/README.md") < FINDINGS.index("docs/studies/scorecard/README.md")
    assert "(docs/studies/phase/boundary.png)" in FINDINGS
    assert size(pd.read_csv(FOLDER / "exponents.csv")) in FINDINGS


def test_what_the_readme_will_say_follows_from_tables() -> None:
    place = {"lag": "asked", "units": 12, "exponent": 0.5, "low": 0.4, "high": 0.6, "verdict": "refuted"}
    rows = [place | {"task": task, "method": method} for task in TASKS for method in ("tis", "clip")]
    rows[1] |= {"verdict": "holds"}
    exponents = pd.DataFrame([*rows, rows[0] | {"lag": "reached", "exponent": 9.0}])
    assert law(exponents)[:2] == [
        "on `walk` it is refuted for 1 of 2 methods and holds for 1",
        "`tis` falls as S to the minus 0.50 [0.40, 0.60] on `walk`",
    ]
    assert size(exponents) == "4 seeds"
    rate = {"task": "walk", "staleness": 16, "difference": 1.0, "low": 0.0, "high": 2.0, "verdict": "undecided"}
    assert ratios(pd.DataFrame([rate]))[0] == "on `walk` lag 16: 2.00 times [1.00, 4.00] (**undecided**)"
    verdicts = ["more", "less", "more", "undecided", "more", "more"]
    rewards = pd.DataFrame({"against": "tis", "verdict": verdicts})
    assert gains(rewards)[0] == "against `tis` 1 less, 4 more, 1 undecided (of 6)"
