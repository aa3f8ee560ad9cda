"""What the findings say of the boundary study is recomputed from its tables."""

from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "docs" / "studies" / "boundary"
PAGE = (ROOT / "docs" / "findings.md").read_text()
TEXT = " ".join(PAGE.split("**Which seed will fail.**")[1].split("\n**")[0].split())
SIGNALS = pd.read_csv(STUDY / "signals.csv").set_index("signal")
RIVALS = pd.read_csv(STUDY / "rivals.csv").set_index("rival")


def said(row: "pd.Series[float]") -> str:
    """An AUROC with its interval, as the page prints it."""
    return f"{row['auroc']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def test_the_size_of_the_study() -> None:
    places = pd.read_csv(STUDY / "places.csv")
    runs = pd.read_csv(STUDY / "runs.csv")
    said = (
        f"{len(runs)} runs, registered beforehand, of which {32 * len(places)} are judged: {len(places)} configurations"
    )
    assert said in TEXT
    assert f"{(runs['stage'] == 'pilot').sum()} of the runs were pilots." in TEXT
    tried = pd.read_csv(STUDY / "tried.csv")
    tried = tried[tried["main"] > 0]
    assert set(tried["main"]) == {32}
    missed = (tried["counts"] == "no").sum()
    assert f"The study ended after {len(tried)} of its 24 configurations, for lack of time;" in TEXT
    assert f"in the other {missed} too few or too many seeds failed." in TEXT
    assert places["task"].nunique() == 3
    failed = places["failed"]
    assert f"makes {failed.min()} to {failed.max()} of them fail within 300 updates" in TEXT


def test_fates_are_blurred() -> None:
    fates = pd.read_csv(STUDY / "fates.csv").set_index(["counts_as", "event"])["runs"]
    rebound, failed = fates["failed", "collapse with rebound"], fates["failed"].sum()
    dip, survived = fates["survived", "transient dip"], fates["survived"].sum()
    assert f"{rebound} of the {failed} failures are no longer down at the end (update 300)" in TEXT
    assert f"{dip} of the {survived} survivors had a dip too short to count" in TEXT
    page = " ".join((STUDY / "README.md").read_text().split())
    assert ("most failures are falls that are no longer down" in page) == (rebound > failed / 2)
    assert ("most survivors had a dip" in page) == (dip > survived / 2)


def test_ess() -> None:
    assert f"Its AUROC is {said(SIGNALS.loc['ess'])} (undecided against a bar of 0.6)" in TEXT
    assert SIGNALS.loc["ess", "verdict"] == "undecided"
    assert SIGNALS.loc["ess", "low"] < 0.5, "not told from guessing"
    tasks = pd.read_csv(STUDY / "tasks.csv").set_index(["signal", "task"])["auroc"]["ess"]
    assert f"{tasks['walk']:.2f} on `walk`, {tasks['chain']:.2f} on `chain` and {tasks['walk-eos']:.2f} on" in TEXT
    leads = pd.read_csv(STUDY / "leads.csv").set_index(["signal", "lead"]).loc["ess"]
    assert f"At 5 updates ahead it is {said(leads.loc[5])}, at 20 it is {said(leads.loc[20])}." in TEXT


def test_rivals() -> None:
    assert f"KL has {said(SIGNALS.loc['kl'])} and a low training reward {said(SIGNALS.loc['reward_low'])}." in TEXT
    assert SIGNALS["auroc"].idxmax() == "log_weight_low"
    assert f"the log-weights, {said(SIGNALS.loc['log_weight_low'])}." in TEXT
    near = pd.read_csv(STUDY / "leads.csv").query("lead == 5").set_index("signal")
    said_near = [said(near.loc[name]) for name in ("kl", "reward_low")]
    assert f"KL has {said_near[0]} and a low training reward {said_near[1]} (no bar, not corrected)." in TEXT
    tested = RIVALS["difference"].dropna()
    assert len(tested) == 9
    assert "None of the nine rivals that could be tested passes the bar" in TEXT
    assert not (SIGNALS["verdict"] == "can tell").any()
    assert set(RIVALS.loc[tested.index, "verdict"]) == {"undecided"}


def test_detectors() -> None:
    alarms = pd.read_csv(STUDY / "alarms.csv").set_index("detector")
    whole, ess = alarms.loc["any of them"], alarms.loc["ess"]
    before, matched = whole["before_share"], whole["before_matched"]
    assert f"At least one fires before {before:.0%} of the failures, and by the same update in {matched:.0%} of" in TEXT
    ahead, also = whole["in_time_share"], whole["in_time_matched"]
    assert f"at least 10 updates ahead in {ahead:.0%} and {also:.0%}." in TEXT
    assert f"That of ESS fires before {ess['before_share']:.0%}, and in {ess['before_matched']:.0%}." in TEXT
    monitor = " ".join((ROOT / "docs" / "monitor.md").read_text().split())
    assert (
        f"at least one fired 10 updates or more before {ahead:.0%} of the failures, and by then in {also:.0%} of"
        in monitor
    )
    changes = " ".join((ROOT / "CHANGELOG.md").read_text().split())
    assert f"as often in survivors of the same configuration as in failures ({ahead:.0%} of both)" in changes
    assert f"{ahead:.0%}" == f"{also:.0%}"


def test_the_reversed_signal() -> None:
    area = SIGNALS.loc["ess_beyond_kl", "auroc"]
    assert f"ESS beyond KL is a reversed signal: it has {area:.2f}, and 1 minus it is {1 - area:.2f};" in TEXT
    chance = pd.read_csv(STUDY / "chance.csv")
    assert set(chance["lead"]) == {10, 5}
    assert chance["p_holm"].min() > 0.05, "nothing survives Holm's adjustment"
    page = " ".join((STUDY / "README.md").read_text().split())
    near = chance[chance["signal"] == "ess_beyond_kl"].set_index("lead")["auroc"]
    assert f"AUROC {near[10]:.2f} at 10 updates, {near[5]:.2f} at 5 updates ahead." in page


def test_both_pages_say_that_the_studies_share_seeds() -> None:
    """Seeds 200 to 215 on the same tasks, method and lag, at other learning rates."""
    place = ["task", "seed"]
    acting = pd.read_csv(ROOT / "docs" / "studies" / "acting" / "runs.csv").query("act == 'nothing'")
    ours = pd.read_csv(STUDY / "runs.csv").query("method == 'reinforce' and staleness == 16 and stage == 'main'")
    both = acting.merge(ours, on=place, suffixes=("", "_ours"))
    assert set(both["task"]) == {"walk", "chain"}
    assert (both["seed"].min(), both["seed"].max()) == (200, 215)
    assert (both["lr"] != both["lr_ours"]).all()
    for name, other in (("acting", "boundary"), ("boundary", "acting")):
        page = (ROOT / "docs" / "studies" / name / "README.md").read_text()
        assert "* Seeds 200 to 215 are also" in page
        assert f"of the [{other} study](../{other}/README.md)" in page
