"""What the pages say of alarms on grids that tuned none of them is in the tables of `tools/alarm_grids`."""

import pandas as pd
import pytest
from alarm_grids.answers import ANNOUNCED
from alarm_grids.tables import FOLDER
from page_prose import STUDIES, prose

PAGE = prose(STUDIES / "calibration" / "README.md")
FINDINGS = prose(STUDIES.parent / "findings.md")
MEANS = pd.read_csv(FOLDER / "means.csv").set_index(["tuning", "rate"])
CONTRASTS = pd.read_csv(FOLDER / "contrasts.csv").set_index("contrast")
ROWS = pd.read_csv(FOLDER / "held_out.csv")
WITHOUT = pd.read_csv(FOLDER / "without.csv")


def percent(value: float) -> str:
    """In whole percent, and never minus zero."""
    return f"{round(100 * value) + 0:d}"


def share(tuning: str, rate: str = "healthy_alarmed") -> str:
    """A mean over grids with its interval, as the pages print it."""
    return interval(MEANS.loc[(tuning, rate)])


def interval(row: "pd.Series[float]", unit: str = "%") -> str:
    return f"{percent(row['mean'])}{unit} [{percent(row['low'])}, {percent(row['high'])}]"


@pytest.mark.parametrize(
    ("label", "tuning"),
    [
        ("one other grid", "one"),
        ("several others, pooled (primary)", "several"),
        ("several others, the promise held on each", "strict"),
        ("the packaged detectors, on the seven others (exploratory)", "packaged"),
    ],
)
def test_the_table(label: str, tuning: str) -> None:
    row = MEANS.loc[(tuning, "healthy_alarmed")]
    sides = ["" if pd.isna(row[side]) else f"{row[side]:.0f}" for side in ("below", "above")]
    verdict = "" if pd.isna(row["verdict"]) else row["verdict"]
    cells = [label, share(tuning), verdict, *sides, share(tuning, "recall"), share(tuning, "random")]
    assert " ".join(f"| {' | '.join(cells)} |".split()) in PAGE
    assert row["grids"] == (7 if tuning == "packaged" else 8)


def test_the_contrasts() -> None:
    primary = CONTRASTS.loc["several - one"]
    assert primary["verdict"] == "lower"
    assert f"**: {interval(primary, ' points')}, *lower*." in PAGE
    more, fewer = MEANS.loc[("strict", ANNOUNCED)], -CONTRASTS.loc["strict - several", ["mean", "high", "low"]]
    fewer = fewer.set_axis(["mean", "low", "high"])
    announced = percent(MEANS.loc[("strict", "recall"), "mean"])
    said = (
        f"they announce {announced}% of the failures, {interval(more, ' points')} more than random alarms at the same"
    )
    assert f"{said} rate, and {interval(fewer, ' points')} less than the pooled ones." in PAGE


def test_where_the_pooled_ones_break_it() -> None:
    own = ROWS[ROWS["tuning"] == "several"].set_index("held_out")
    broken = own[own["healthy_alarmed_low"] > 0.1]["healthy_alarmed"]
    named = [f"`{name}` ({percent(value)}%)" for name, value in broken.items()]
    assert f"They do in 4 grids and break it in 3: {named[0]}, {named[1]} and {named[2]}" in PAGE
    assert len(named) == 3


def test_every_pair_of_grids() -> None:
    pairs = ROWS[ROWS["tuning"] == "one"].set_index(["tuned_on", "held_out"])["healthy_alarmed"].sort_index()
    said = f"the share goes from {percent(pairs.min())}% to {percent(pairs.max())}%"
    assert said in PAGE
    small = ["step-rules", "every-method", "cures"]
    large = pairs.loc[["calibration", "phase", "boundary"], small]
    assert f"fire in {percent(large.min())}% to {percent(large.max())}% of healthy runs" in PAGE
    kept = pairs.loc[["step-rules", "third-task"], small]
    assert f"in {percent(kept.min())}% to {percent(kept.max())}%." in PAGE


def test_the_sensitivities() -> None:
    apart = share("several, other seeds")
    assert f"pooled detectors fire in {apart}." in PAGE
    low, high = WITHOUT["mean"].min(), WITHOUT["mean"].max()
    assert f"With one grid left out the pooled mean is {percent(low)}% to {percent(high)}%" in PAGE
    assert f"Stalls and dips counted as well, it is {share('several', 'not_failing_alarmed')}." in PAGE


def test_what_other_pages_say() -> None:
    assert f"On [other grids](#one-grid-held-out) detectors tuned on one grid are wrong in {share('one')}." in PAGE
    assert f"fires in {share('one')} of the healthy runs of another grid" in FINDINGS
    told = f"tuned on several others, pooled, in {share('several')}, which is undecided against the promise of 10%"
    assert f"{told}; held to it on each of them, in {share('strict')}: kept." in FINDINGS
    assert f"announce {percent(MEANS.loc[('strict', 'recall'), 'mean'])}% of the failures; random alarms" in FINDINGS
    monitor = prose(STUDIES.parent / "monitor.md")
    assert f"tuned on one grid fire in {share('one')} of the healthy runs of another" in monitor
    assert f"held to one in ten on each of several grids, in {share('strict')}" in monitor
    changes = prose(STUDIES.parents[1] / "CHANGELOG.md")
    assert f"alarms tuned on one are wrong in {share('one')} of the healthy runs of another" in changes
    told = f"pooled, it is {share('several')}; held to one in ten on each of them, {share('strict')}, at the price"
    assert told in changes
