"""What the findings say of the third task is recomputed from its tables."""

import pandas as pd
from page_prose import STUDIES

from vcpo_bench.analysis.wording import with_interval

STUDY = STUDIES / "third-task"
PAGE = (STUDIES.parent / "findings.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split("**On a third task,")[1].split("\n- **")[0].split())
CHANGES = " ".join((STUDIES.parents[1] / "CHANGELOG.md").read_text(encoding="utf-8").split())
LAWS = pd.read_csv(STUDY / "exponents.csv").query("lag == 'asked'").set_index("method")
RATES = pd.read_csv(STUDY / "rates.csv")


def exponent(method: str) -> str:
    row = LAWS.loc[method]
    return with_interval(row["exponent"], row["low"], row["high"])


def test_the_exponents() -> None:
    runs = pd.read_csv(STUDY / "runs.csv")
    assert f"with {runs['seed'].nunique()} seeds and {len(runs)} runs" in TEXT
    assert f"{len(runs)} runs with {runs['seed'].nunique()} seeds" in CHANGES
    assert f"the exponent is {exponent('reinforce')} for REINFORCE, undecided against 0.75 to 1.25;" in TEXT
    assert f"exponent of 1 / lag is {exponent('reinforce')}" in CHANGES
    assert LAWS.loc["reinforce", "verdict"] == "undecided"
    said = f"{exponent('tis')} for TIS, {exponent('clip')} for `clip` and {exponent('vcpo')} for VCPO."
    assert said in TEXT
    corrected = LAWS.drop("reinforce")
    assert len(corrected) == 6
    assert (corrected["high"] < 0.75).all()
    assert set(corrected["verdict"]) == {"refuted"}


def test_controls_of_the_step() -> None:
    assert (RATES["low"] < 0).all()
    assert (RATES["high"] > 0).all()
    assert (RATES["reach90"] > 0.5).all(), "equality could not have been shown"
    assert len(RATES) == 6
    times = (2 ** RATES["difference"]).groupby(RATES["against"].str.split("+").str[1]).agg(["min", "max"])
    for control, words in (("lr-matched", "of the same mean"), ("lr-shuffled", "in random order")):
        least, most = times.loc[control]
        assert f"{words} ({least:.1f} to {most:.1f} times)" in TEXT
