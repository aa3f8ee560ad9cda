"""The confirmation's page follows from its tables, and the findings quote them."""

import pandas as pd
from confirmation_study import page
from confirmation_study.design import ASKED, EVERY, FOLDER, PRIMARY, SIGHTED
from page_prose import STUDIES, prose

from vcpo_bench.analysis.wording import with_interval

ANSWERS = pd.read_csv(FOLDER / "answers.csv").set_index("statement")
AREAS = pd.read_csv(FOLDER / "areas.csv").set_index(["signal", "failures", "controls"])
FINDINGS = prose(STUDIES.parent / "findings.md")


def test_the_page_is_current() -> None:
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == page.page(), "run: tools/confirmation_study/page.py"


def test_every_statement_was_asked_of_the_registered_seeds() -> None:
    assert list(ANSWERS.index) == [one.name for one in EVERY]
    runs = pd.read_csv(STUDIES / "phase" / "second" / "runs.csv")
    assert sorted(runs["seed"].unique()) == list(ASKED)
    assert page.ended_seeds() == list(ASKED)


def test_the_findings_quote_it() -> None:
    own = ANSWERS.loc[PRIMARY.name]
    value = with_interval(own["value"], own["low"], own["high"])
    said = f"AUROC {own['first']:.2f} for these failures and {own['second']:.2f} for those of the other methods"
    assert f"{said}, a difference of {value}" in FINDINGS
    inside = AREAS.loc[("ess", "walk, reinforce", "same method")]
    assert f"{with_interval(inside['value'], inside['low'], inside['high'])}" in FINDINGS
    assert ANSWERS.loc[SIGHTED, "first"] == inside["value"]
    confirmed = int((ANSWERS["word"] == "confirmed").sum())
    assert f"{confirmed} of the ten statements are confirmed" in FINDINGS
