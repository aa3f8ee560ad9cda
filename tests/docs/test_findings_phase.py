"""What the findings say of the phase study is recomputed from its tables, task by task."""

import math
import re
from itertools import pairwise

import pandas as pd
import pytest
import yaml
from page_prose import STUDIES, ends, number
from phase_study import contrasts, horizons
from phase_study.contrasts import RATE_MARGIN, REWARD_MARGIN
from phase_study.design import LADDER, LAGS, METHODS, STEPS, TASKS
from phase_study.tables import HORIZON_LAG, HORIZONS

PHASE = STUDIES / "phase"
PAGE = (STUDIES.parent / "findings.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split("**The phase law.**")[1].split("\n**")[0].split())
STUDY = " ".join((PHASE / "README.md").read_text(encoding="utf-8").split())
EXPONENTS = pd.read_csv(PHASE / "exponents.csv").set_index(["lag", "task", "method"]).sort_index()
RUNS = pd.read_csv(PHASE / "runs.csv")


def exponent(lag: str, task: str, method: str) -> str:
    """An exponent of 1 / lag with its interval, as the page prints it."""
    row = EXPONENTS.loc[(lag, task, method)]
    return f"{number(row['exponent'])} {ends(row['low'], row['high'])}"


def test_the_size_of_the_study() -> None:
    said = "{} runs, registered beforehand: for nine methods, 6 seeds and requested lags 4, 16 and 64,"
    assert said.format(len(RUNS)) in TEXT
    assert (RUNS["seed"].nunique(), RUNS["method"].nunique(), len(METHODS)) == (6, 9, 9)
    assert set(RUNS["staleness"]) == {0, *LAGS}
    assert LAGS == (4, 16, 64)
    assert f"that survives {STEPS} updates" in TEXT


def test_who_fell_before_the_lag() -> None:
    failures = pd.read_csv(PHASE / "failures.csv")
    lagged = RUNS[RUNS["staleness"] > 0]
    assert failures["failed"].sum() == lagged["failed"].sum()
    early = (lagged["failed"] & (lagged["onset"] < lagged["staleness"])).sum()
    assert early == failures["before_the_lag"].sum()
    said = (
        "{} of the {} failures at these lags came before the requested lag was reached, {} more may have begun before"
    )
    counts = failures[["perhaps_before", "twins"]].sum()
    assert said.format(early, failures["failed"].sum(), counts["perhaps_before"]) in TEXT
    assert f"before it, and {counts['twins']} are the same fall as one at another lag." in TEXT


def test_the_exponents() -> None:
    said = [exponent("asked", task, method) for method in ("reinforce", "tis", "clip", "vcpo") for task in TASKS]
    sentence = (
        "The exponent of 1 / lag is {} on `walk` and {} on `chain` for REINFORCE; {} and {} for TIS; {} and {} for "
        "`clip`; {} and {} for VCPO."
    )
    assert sentence.format(*said) in TEXT
    asked = EXPONENTS.loc["asked"]
    said = "holds within the registered 0.75 to 1.25 for REINFORCE on `chain` and is undecided on `walk`."
    assert said in TEXT
    assert list(asked.loc[[("chain", "reinforce"), ("walk", "reinforce")], "verdict"]) == ["holds", "undecided"]
    corrected = asked.drop("reinforce", level="method")
    assert len(corrected) == 2 * 8
    assert (corrected["high"] < 0.75).all()
    assert set(corrected["verdict"]) == {"refuted"}


def test_the_exponents_of_the_lag_that_was_reached() -> None:
    walk, chain = exponent("reached", "walk", "tis"), exponent("reached", "chain", "vcpo")
    assert f"first failing run fell, {walk} for TIS on `walk` and {chain} for VCPO on `chain`." in TEXT
    differs = EXPONENTS.loc["asked"]["verdict"] != EXPONENTS.loc["reached"]["verdict"]
    constant = ("chain", "vcpo(ess=off)+lr-matched")
    assert list(differs.index[differs]) == [constant], "one verdict changes"
    ways = [exponent(lag, *constant) for lag in ("asked", "reached")]
    assert "One verdict changes: that of VCPO's updates with a constant step, from {} to {},".format(*ways) in TEXT
    assert EXPONENTS.loc[("reached", *constant), "verdict"] == "undecided"


def test_facts_of_the_scorecard_agree() -> None:
    parts = pd.read_csv(STUDIES / "scorecard" / "verdicts.csv").query("fact == 23")
    lag = parts[parts["part"].str.startswith("1 / lag")].set_index("part")["verdict"]
    assert "reproduced for it on `chain`, undecided on `walk`, refuted for TIS and `clip`." in " ".join(PAGE.split())
    own = lag.index.str.contains("reinforce")
    assert lag[own].to_dict() == {
        "1 / lag, reinforce on chain": "reproduced",
        "1 / lag, reinforce on walk": "undecided",
    }
    assert set(lag[~own]) == {"refuted"}


def test_vcpo_against_smaller_steps() -> None:
    rates = pd.read_csv(PHASE / "rates.csv")
    assert len(rates) == 6
    more = (rates["task"] == "chain") & (rates["staleness"] == 64)
    assert list(rates["verdict"][more]) == ["more"]
    assert set(rates["verdict"][~more]) == {"undecided"}
    place = 2 ** rates.loc[more, ["difference", "low", "high"]].iloc[0]
    assert "On `chain` at lag 64 it bears {:.2f} [{:.2f}, {:.2f}] times the learning rate".format(*place) in TEXT
    others = rates[~more]
    ratio = (2 ** others["difference"]).groupby(others["task"])
    low, high = ratio.min(), ratio.max()
    assert f"it is {low['walk']:.1f} to {high['walk']:.1f} times on `walk` and" in TEXT
    assert f"{low['chain']:.1f} to {high['chain']:.1f} times on `chain`, and each interval includes 1." in TEXT
    assert ((others["low"] < 0) & (others["high"] > 0)).all()
    assert (rates["reach90"] > 0.5).all(), "equality could have been shown"


@pytest.mark.parametrize(
    ("against", "sentence", "verdicts"),
    [
        (
            "tis",
            "VCPO ends above TIS at lag 4 and below it at lag 64 on `walk`, below it at lag 4 and above it at lag 64 "
            "on `chain`; at lag 16 both are undecided.",
            {"walk": ["more", "undecided", "less"], "chain": ["less", "undecided", "more"]},
        ),
        (
            "vcpo(ess=off)",
            "it is never above by the margin of 0.05: on `walk` undecided at all three lags, on `chain` below at lag "
            "4, undecided at lag 16 and, at lag 64, 0.01 above, which is equivalent.",
            {"walk": ["undecided", "undecided", "undecided"], "chain": ["less", "undecided", "equivalent"]},
        ),
    ],
)
def test_what_vcpo_earns(against: str, sentence: str, verdicts: dict[str, list[str]]) -> None:
    assert sentence in TEXT
    own = pd.read_csv(PHASE / "rewards.csv").query("against == @against").sort_values("staleness")
    assert {task: list(rows["verdict"]) for task, rows in own.groupby("task")} == verdicts


def test_how_little_vcpo_is_above_its_baseline() -> None:
    rewards = pd.read_csv(PHASE / "rewards.csv").set_index(["against", "task", "staleness"])["difference"]
    assert f"{rewards['vcpo(ess=off)', 'chain', 64]:.2f}" == "0.01"


def test_what_the_page_of_the_study_says_by_hand() -> None:
    assert f"was searched on nine rates, {LADDER[0]:.1e} to {LADDER[-1]:.1e}".replace("e-0", "e-") in STUDY
    assert len(LADDER) == 9
    assert {round(high / low, 6) for low, high in pairwise(LADDER)} == {2.0}
    assert "each twice the one before" in STUDY
    assert set(RUNS["lr"].round(10)) <= {round(rate, 10) for rate in LADDER}


def test_what_is_left_to_the_preset() -> None:
    preset = yaml.safe_load((STUDIES.parents[1] / "configs" / "phase.yaml").read_text(encoding="utf-8"))
    sizes = [len(re.split(r",(?![^(]*\))", preset[name])) for name in ("methods", "staleness", "task", "lr")]
    assert f"(`vcpo-bench run --config phase`, {math.prod(sizes) * preset['seeds']:,} cells)" in STUDY
    assert f"`walk-eos`, {preset['seeds']} seeds at the boundary and `+lr-shuffled` are left to the preset" in STUDY
    assert "walk-eos" in preset["task"]
    assert "+lr-shuffled" in preset["methods"]


def test_margins_and_least_numbers_of_the_page() -> None:
    assert f"the 90% interval lies within +-{RATE_MARGIN}" in STUDY
    assert f"fewer than {contrasts.LEAST_PAIRS} pairs that say anything give no verdict" in STUDY
    assert STUDY.count(f"margin {REWARD_MARGIN}") == 2
    assert f"Intervals by resampling seeds, from {horizons.LEAST_SEEDS} seeds on." in STUDY
    assert f"failures by update {HORIZONS[0]}, {HORIZONS[1]} and {HORIZONS[2]}" in STUDY
    assert f"At lag {HORIZON_LAG}, with failures" in STUDY
