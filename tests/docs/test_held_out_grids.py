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
    assert f"**: {interval(primary, ' points')}, *lower*; on `phase` more often" in PAGE
    more, fewer = MEANS.loc[("strict", ANNOUNCED)], -CONTRASTS.loc["strict - several", ["mean", "high", "low"]]
    fewer = fewer.set_axis(["mean", "low", "high"])
    announced = percent(MEANS.loc[("strict", "recall"), "mean"])
    said = f"They announce few failures: {announced}%, {interval(more, ' points')} more than random alarms at the same"
    assert f"{said} rate, and {interval(fewer, ' points')} less than the pooled ones." in PAGE


def test_where_the_pooled_ones_break_it() -> None:
    own = ROWS[ROWS["tuning"] == "several"].set_index("held_out")
    broken = own[own["healthy_alarmed_low"] > 0.1]["healthy_alarmed"]
    named = [f"`{name}` ({percent(value)}%)" for name, value in broken.items()]
    assert f"They do in 4 grids and break it in 3: {named[0]}, {named[1]} and {named[2]}" in PAGE
    assert len(named) == 3
    singles = ROWS[ROWS["tuning"] == "one"].groupby("held_out")["healthy_alarmed"].mean()
    more = own["healthy_alarmed"] > singles[own.index]
    assert list(more.index[more]) == ["phase"]
    said = (
        f"on `phase` more often ({percent(own.loc['phase', 'healthy_alarmed'])}% against {percent(singles['phase'])}%)"
    )
    assert f"{said}, on the other seven less." in PAGE


def test_how_narrowly_the_strict_ones_keep_it() -> None:
    high = WITHOUT.query("tuning == 'strict'")["high"]
    over = high[high > 0.1]
    assert f"With one of five grids left out the upper end is above 10% (at most {100 * over.max():.1f}%" in PAGE
    assert len(over) == 5
    also = share("strict", "not_failing_alarmed")
    assert f"with stalls and dips counted it is {also}." in PAGE
    assert f"With stalls and dips counted it is {also}." in FINDINGS
    own = ROWS[ROWS["tuning"] == "strict"].set_index("held_out")
    columns = {"healthy_alarmed": "mean", "healthy_alarmed_low": "low", "healthy_alarmed_high": "high"}
    phase, boundary = (interval(own.loc[name].rename(columns)) for name in ("phase", "boundary"))
    assert f"Single grids reach {phase} (`phase`) and {boundary} (`boundary`)." in PAGE


def test_every_pair_of_grids() -> None:
    pairs = ROWS[ROWS["tuning"] == "one"].set_index(["tuned_on", "held_out"])["healthy_alarmed"].sort_index()
    said = f"the share goes from {percent(pairs.min())}% to {percent(pairs.max())}%"
    assert f"{said} ([`held_out.csv`](grids/held_out.csv) has every pair but `calibration` on `phase`" in PAGE
    assert len(pairs) == 5 * 8 - 5 - 1
    assert ("calibration", "phase") not in pairs.index
    small = ["step-rules", "every-method", "cures"]
    large = pairs.loc[["calibration", "phase", "boundary"], small]
    assert f"fire in {percent(large.min())}% to {percent(large.max())}% of healthy runs" in PAGE
    kept = pairs.loc[["step-rules", "third-task"], small]
    assert f"in {percent(kept.min())}% to {percent(kept.max())}%." in PAGE


def test_the_sensitivities() -> None:
    apart = share("several, other seeds")
    wide = ROWS.pivot_table(index="held_out", columns="tuning", values="healthy_alarmed")
    rules, before = (wide.loc["step-rules", name] for name in ("several, other seeds", "several"))
    said = f"pooled detectors fire in {apart}: on `step-rules` in {percent(rules)}% instead of {percent(before)}%,"
    assert f"{said} elsewhere as often or less." in PAGE
    others = wide.drop("step-rules")
    assert (others["several, other seeds"] <= others["several"] + 0.01).all()
    pooled = WITHOUT.query("tuning == 'several'")["mean"]
    low, high = pooled.min(), pooled.max()
    assert f"With one grid left out the pooled mean is {percent(low)}% to {percent(high)}%" in PAGE
    assert f"With stalls and dips counted, it is {share('several', 'not_failing_alarmed')}." in PAGE


def test_what_other_pages_say() -> None:
    assert f"detectors tuned on one grid are wrong in {share('one')} of healthy runs." in PAGE
    assert (
        f"tuned on one grid, at least one detector fires in {share('one')} of the healthy runs of another;" in FINDINGS
    )
    told = f"tuned on several, pooled, in {share('several')} (undecided against the promise of 10%)"
    assert f"{told}; with the promise held on each, in {share('strict')}." in FINDINGS
    announced, random = (percent(MEANS.loc[("strict", rate), "mean"]) for rate in ("recall", "random"))
    assert (
        f"These announce {announced}% of the failures. Random alarms at the same rate announce {random}%." in FINDINGS
    )
    monitor = prose(STUDIES.parent / "monitor.md")
    assert f"tuned on one grid fire in {share('one')} of the healthy runs of another" in monitor
    assert f"they fire in {share('strict')}, but announce only {announced}% of the failures" in monitor
    changes = prose(STUDIES.parents[1] / "CHANGELOG.md")
    assert f"alarms tuned on one are wrong in {share('one')} of the healthy runs of another" in changes
    told = (
        f"pooled, it is {share('several')}; held to one in ten on each of them, {share('strict')}, but these announce"
    )
    assert told in changes
