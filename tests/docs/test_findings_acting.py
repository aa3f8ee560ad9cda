"""What the findings say of acting on an alarm is recomputed from the tables of that study."""

from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "docs" / "studies" / "acting"
PAGE = (ROOT / "docs" / "findings.md").read_text()
TEXT = " ".join(PAGE.split("**Acting on an alarm.**")[1].split("\n**")[0].split())
CONTRASTS = pd.concat([pd.read_csv(STUDY / f"{name}.csv") for name in ("primary", "secondary")])


def contrast(task: str, one: str, other: str) -> "pd.Series[float]":
    """The row of a contrast."""
    found = CONTRASTS[(CONTRASTS["task"] == task) & (CONTRASTS["one"] == one) & (CONTRASTS["other"] == other)]
    assert len(found) == 1
    return found.iloc[0]


def said(task: str, one: str, other: str) -> str:
    """Its numbers as the page prints them."""
    row = contrast(task, one, other)
    value, low, high = (f"{row[name]:.2f}".replace("-0.00", "0.00") for name in ("difference", "low", "high"))
    return f"{value} [{low}, {high}]"


def test_the_size_of_the_study() -> None:
    runs = pd.read_csv(STUDY / "runs.csv")
    assert f"{len(runs)} runs, registered beforehand: REINFORCE at lag 16, on two tasks with 16 seeds each" in TEXT
    assert (runs["task"].nunique(), runs["seed"].nunique()) == (2, 16)


def treatment(task: str, parents: str, name: str) -> "pd.Series[float]":
    """The row of a treatment."""
    table = pd.read_csv(STUDY / "treatments.csv").set_index(["task", "parents", "treatment"])
    return table.loc[(task, parents, name)]


def test_how_many_fail_untouched() -> None:
    rows = [treatment(task, "risky", "no act") for task in ("walk", "chain")]
    shares = [f"{row['failed']:g} of {row['seeds']:g}" for row in rows]
    assert f"Untouched, {shares[0]} runs fail on `walk` and {shares[1]} on `chain`" in TEXT
    failed, down = (sum(row[name] for row in rows) for name in ("failed", "down"))
    assert f"{failed - down:g} of these {failed:g} are no longer down at the end" in TEXT
    parents = pd.read_csv(STUDY / "parents.csv").query("parents == 'risky'")
    runs = pd.read_csv(STUDY / "runs.csv").query("act == 'nothing' and group == 'risky' and failed")
    ahead = runs["onset"] - runs["alarm"]
    assert parents["before_onset"].sum() == (ahead > 0).sum()
    said = (
        f"finds the run down in {(ahead > 0).sum()} of the {failed:g}, by at least 10 updates in {(ahead >= 10).sum()}."
    )
    assert f"The detector fires before the evaluation that {said}" in TEXT


def test_acting_at_the_alarm_and_at_other_updates() -> None:
    at = "vcpo at the alarm"
    walk, chain = (said(task, at, "no act") for task in ("walk", "chain"))
    assert f"At the alarm it ends {walk} above doing nothing on `walk` and {chain} on `chain`." in TEXT
    rows = [treatment(task, "risky", "vcpo at a placebo time") for task in ("walk", "chain")]
    first, last = min(row["first_at"] for row in rows), max(row["last_at"] for row in rows)
    walk, chain = (said(task, at, "vcpo at a placebo time") for task in ("walk", "chain"))
    assert f"At updates {first:g} to {last:g}, drawn without a look at the run, it is equivalent within 0.05" in TEXT
    assert f": {walk} and {chain}." in TEXT
    for task in ("walk", "chain"):
        assert contrast(task, at, "no act")["verdict"] == "higher"
        assert contrast(task, at, "vcpo at a placebo time")["verdict"] == "equivalent"
        assert contrast(task, "lr/3 at the alarm", at)["verdict"] == "lower"


def test_new_seeds_alone() -> None:
    place = ["task", "one", "other"]
    waves = pd.read_csv(STUDY / "waves.csv")
    first, alone = (own.set_index(place)["verdict"] for _, own in waves.groupby("wave"))
    same, part = (int((alone == other[alone.index]).sum()) for other in (first, CONTRASTS.set_index(place)["verdict"]))
    said = f"{same} of {len(alone)} contrasts, and that of all"
    assert f"alone they give the verdict of those others in {said} seeds in {part}." in TEXT
    changes = " ".join((ROOT / "CHANGELOG.md").read_text().split())
    assert f"the new seeds alone give the verdict of the first eight in {said} sixteen in {part}." in changes


def test_failures_by_the_written_rule() -> None:
    rule = pd.read_csv(STUDY / "rule.csv").set_index("task").loc["both"]
    rows = {
        at: [treatment(task, "risky", f"vcpo at {at}") for task in ("walk", "chain")]
        for at in ("the alarm", "a placebo time")
    }
    failed = [sum(row["failed"] for row in found) for found in rows.values()]
    assert failed == [rule["at_alarm"], rule["at_placebo"]]
    assert f"{failed[0]:g} of {rule['seeds']:g} runs fail when VCPO begins at the alarm, {failed[1]:g} of" in TEXT
    said = f"({rule['only_at_alarm']:g} and {rule['only_at_placebo']:g} pairs differ, sign test p = {rule['p']:.3f}"
    assert f"{said}: undecided, not registered)" in TEXT
    assert rule["p"] > 0.05
    assert sum(row["failed_after"] for found in rows.values() for row in found) == 0, "as the page says"


def test_false_alarms() -> None:
    walk, chain = (said(task, "vcpo at a false alarm", "no act") for task in ("walk", "chain"))
    assert (
        f"**Switching healthy runs to VCPO gained a little as well**: {walk} on `walk` and {chain} on `chain`." in TEXT
    )
    assert "These runs have a quarter of the learning rate and were never alarmed;" in TEXT
    parents = pd.read_csv(STUDY / "parents.csv").set_index(["task", "parents"])
    for task in ("walk", "chain"):
        calm, risky = parents.loc[(task, "calm")], parents.loc[(task, "risky")]
        assert (calm["lr"] * 4, calm["alarmed"]) == (risky["lr"], 0)
    found = [contrast(task, "vcpo at a false alarm", "no act") for task in ("walk", "chain")]
    assert [row["verdict"] for row in found] == ["higher", "higher"]
    assert f"had a cost there, {said('chain', 'lr/3 at a false alarm', 'no act')} on `chain`" in TEXT
    assert contrast("chain", "lr/3 at a false alarm", "no act")["verdict"] == "lower"


def test_the_act_that_was_added() -> None:
    added = pd.read_csv(STUDY / "added.csv").set_index(["other", "task"])
    assert set(added["one"]) == {"clip at the alarm"}
    gains = added.loc["no act"].loc[["walk", "chain"]]
    parts = [ends(row) for _, row in gains[["difference", "low", "high"]].iterrows()]
    assert f"`clip` ends {parts[0]} above doing nothing on `walk` and {parts[1]} on `chain`." in TEXT
    less = -added.loc["vcpo at the alarm"].loc[["walk", "chain"]][["difference", "high", "low"]]
    parts = [ends(row) for _, row in less.iterrows()]
    assert f"`clip` ends {parts[0]} and {parts[1]} below VCPO." in TEXT
    assert list(added["verdict"].groupby("other").unique().map(list)) == [["higher"], ["lower"]]
    changes = " ".join((ROOT / "CHANGELOG.md").read_text().split())
    gain, behind = ([f"{value:.2f}" for value in table.iloc[:, 0]] for table in (gains[["difference"]], less))
    assert f"(+{gain[0]} and +{gain[1]}) and ends {behind[0]} and {behind[1]} below VCPO." in changes


def test_going_on_with_tis() -> None:
    gains, gaps = (
        [said(task, "tis at the alarm", other) for task in ("walk", "chain")]
        for other in ("no act", "vcpo at the alarm")
    )
    assert f"TIS ends {gains[0]} above doing nothing on `walk` and {gains[1]} on `chain`;" in TEXT
    told = f"against VCPO it is equivalent on `walk` ({gaps[0]}) and undecided on `chain` ({gaps[1]}), where 2 of 16"
    assert f"{told} runs end at 0." in TEXT
    verdicts = [contrast(task, "tis at the alarm", "vcpo at the alarm")["verdict"] for task in ("walk", "chain")]
    assert verdicts == ["equivalent", "undecided"]
    assert {contrast(task, "tis at the alarm", "no act")["verdict"] for task in ("walk", "chain")} == {"higher"}
    ends_at = pd.read_csv(STUDY / "runs.csv").query("task == 'chain' and act == 'tis'")["final_reward"]
    assert ((ends_at < 0.005).sum(), len(ends_at)) == (2, 16)


def ends(row: "pd.Series[float]") -> str:
    """A difference and its interval, as the page prints them."""
    value, low, high = row
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def test_what_the_page_says_it_does_not_show() -> None:
    runs = pd.read_csv(STUDY / "runs.csv")
    page = " ".join((STUDY / "README.md").read_text().split())
    assert "After every act more than 100 updates were left" in page
    assert (runs["updates"] == 300).all()
    assert runs["at"].max() < 200
    assert "hangs on two of 16 seeds, in which `tis` ends at 0" in page
    tis = runs.query("task == 'chain' and act == 'tis'")["final_reward"].sort_values()
    assert tis.iloc[1] < 0.005 < 0.8 < tis.iloc[2]
    assert "would have survived: there is one such run" in page
    survivors = runs.query("group == 'risky' and act == 'nothing' and not failed")
    assert survivors["alarm"].notna().sum() == len(survivors) == 1
