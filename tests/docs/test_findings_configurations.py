"""What findings and the page on the monitor say of the study of configurations is recomputed from its tables."""

import pandas as pd
from page_prose import STUDIES, prose

from vcpo_bench.analysis.wording import interval_of

STUDY = STUDIES / "configurations"
PAGE = (STUDIES.parent / "findings.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split("**Which configuration will fail.**")[1].split("\n**")[0].split())
MONITOR = prose(STUDIES.parent / "monitor.md")
TOLD = pd.read_csv(STUDY / "telling.csv").query("study == 'phase' and lead == 20 and landmarks == 'all'")
RIVALS = pd.read_csv(STUDY / "rivals.csv").set_index(["study", "controls", "rival", "task"]).sort_index()
FATES = pd.read_csv(STUDY / "fates.csv").query("study == 'phase'")
SPEAKS = pd.read_csv(STUDY / "detectors.csv").query("signal == 'any of them' and task == 'all'").set_index("study")


def area(controls: str, task: str = "all", signal: str = "ess") -> "pd.Series[float]":
    place = TOLD[(TOLD["controls"] == controls) & (TOLD["task"] == task) & (TOLD["signal"] == signal)]
    return place.iloc[0]


def test_the_learning_rate_tells_it_better() -> None:
    assert f"it reads {FATES['runs'].sum()} runs of the phase study (seeds 4 to 7, lags 4 to 64)" in TEXT
    ess, rate = area("and method"), area("and method", signal="lr")
    each = [area("and method", task)["value"] for task in ("chain", "walk")]
    said = "ESS has AUROC {} ({:.2f} on `chain`, {:.2f} on `walk`) and the learning rate {:.2f}: ESS minus it is {}."
    gap = RIVALS.loc[("phase", "and method", "lr")]
    whole = interval_of(gap.loc["all"], digits=3)
    assert said.format(interval_of(ess), *each, rate["value"], whole) in TEXT
    assert gap["verdict"].to_dict() == {"all": "less", "chain": "undecided", "walk": "undecided"}
    other = RIVALS.loc[("step-rules", "and method", "lr", "all")]
    assert other["verdict"] == "equivalent"
    assert f"the two are equivalent ({interval_of(other, digits=3)})." in TEXT


def test_against_any_method() -> None:
    ess = area("task, lag")
    each = [area("task, lag", task)["value"] for task in ("chain", "walk")]
    kl, reward = (RIVALS.loc[("phase", "task, lag", name)] for name in ("kl", "reward_low"))
    assert "ESS has {} ({:.2f} and {:.2f})".format(interval_of(ess), *each) in TEXT
    assert f"the difference is {interval_of(kl.loc['all'], digits=3)}, equivalent, on `chain` alone undecided." in TEXT
    assert kl["verdict"].to_dict() == {"all": "equivalent", "chain": "undecided", "walk": "equivalent"}
    assert f"is not shown ({interval_of(reward.loc['all'], digits=3)})" in TEXT
    assert reward.loc["all", "verdict"] == "undecided"
    unread = pd.read_csv(STUDY / "unread.csv").set_index(["study", "task"]).loc[("phase", "all")]
    assert f"{unread['too_early']} of {unread['failed']} failures come too early to be read at all." in TEXT


def test_the_alarms() -> None:
    rates, shares = SPEAKS["false_per_1000"], 100 * SPEAKS["healthy_alarmed"]
    parts = pd.read_csv(STUDIES / "calibration" / "parts.csv").set_index("signal").loc["any of them"]
    calibrated = interval_of(parts, "false_per_1000", 1)
    assert len(SPEAKS) == 4
    assert f"{rates.min():.1f} to {rates.max():.1f} times per 1,000 updates, against {calibrated} there" in TEXT
    assert f"{rates.min():.1f} to {rates.max():.1f} times per 1,000 updates, against {calibrated} there" in MONITOR
    assert f"in {shares.min():.0f}% to {shares.max():.0f}% of the runs" in MONITOR
    assert set(SPEAKS["verdict"]) == {"broken"}
    assert "Batches are smaller in three of the four." in TEXT
    assert (SPEAKS["batch"] < 128).sum() == 3
