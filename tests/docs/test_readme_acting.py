"""What the README says of acting on an alarm is recomputed from the tables of that study."""

from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "docs" / "studies" / "acting"
TEXT = " ".join((ROOT / "README.md").read_text().split("**Acting on an alarm.**")[1].split("\n**")[0].split())
CONTRASTS = pd.concat([pd.read_csv(STUDY / f"{name}.csv") for name in ("primary", "secondary")])


def contrast(task: str, one: str, other: str) -> "pd.Series[float]":
    """The row of a contrast."""
    found = CONTRASTS[(CONTRASTS["task"] == task) & (CONTRASTS["one"] == one) & (CONTRASTS["other"] == other)]
    assert len(found) == 1
    return found.iloc[0]


def said(task: str, one: str, other: str) -> str:
    """Its numbers as the README prints them."""
    row = contrast(task, one, other)
    value, low, high = (f"{row[name]:.2f}".replace("-0.00", "0.00") for name in ("difference", "low", "high"))
    return f"{value} [{low}, {high}]"


def test_the_size_of_the_study() -> None:
    runs = pd.read_csv(STUDY / "runs.csv")
    assert f"{len(runs)} runs, registered beforehand: REINFORCE at lag 16, on two tasks with 8 seeds each" in TEXT
    assert (runs["task"].nunique(), runs["seed"].nunique()) == (2, 8)


def test_how_many_fail_without_an_act() -> None:
    table = pd.read_csv(STUDY / "treatments.csv").query("parents == 'risky' and treatment == 'no act'")
    row = table.set_index("task").loc
    shares = [f"{row[task]['failed']} of {row[task]['seeds']}" for task in ("walk", "chain")]
    assert f"Without an act {shares[0]} runs fail on `walk` and {shares[1]} on `chain`." in TEXT


def test_acting_at_the_alarm_and_at_any_time() -> None:
    at = "vcpo at the alarm"
    walk, chain = (said(task, at, "no act") for task in ("walk", "chain"))
    assert f"At the alarm it ends {walk} above doing nothing on `walk` and {chain} on `chain`." in TEXT
    walk, chain = (said(task, at, "vcpo at a placebo time") for task in ("walk", "chain"))
    assert f"it is equivalent within 0.05: {walk} and {chain}." in TEXT
    for task in ("walk", "chain"):
        assert contrast(task, at, "no act")["verdict"] == "higher"
        assert contrast(task, at, "vcpo at a placebo time")["verdict"] == "equivalent"
        assert contrast(task, "lr/3 at the alarm", at)["verdict"] == "lower"


def test_false_alarms() -> None:
    walk, chain = (said(task, "vcpo at a false alarm", "no act") for task in ("walk", "chain"))
    number, interval = walk.split(" ", 1)
    assert f"they end {number} {interval} higher on `walk` (undecided) and {chain} on `chain`." in TEXT
    found = [contrast(task, "vcpo at a false alarm", "no act") for task in ("walk", "chain")]
    assert [row["verdict"] for row in found] == ["undecided", "higher"]
