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
UNREAD = pd.read_csv(STUDY / "unread.csv").set_index(["study", "task"])
CHANGES = prose(STUDIES.parents[1] / "CHANGELOG.md")
EACH = pd.read_csv(STUDY / "detectors.csv").query("task == 'all'")
SPEAKS = pd.read_csv(STUDY / "detectors.csv").query("signal == 'any of them' and task == 'all'").set_index("study")


def area(controls: str, task: str = "all", signal: str = "ess") -> "pd.Series[float]":
    place = TOLD[(TOLD["controls"] == controls) & (TOLD["task"] == task) & (TOLD["signal"] == signal)]
    return place.iloc[0]


def test_what_is_read() -> None:
    assert f"it reads {FATES['runs'].sum()} runs of the phase study (seeds 4 to 7, lags 4 to 64)" in TEXT
    row, other = (UNREAD.loc[(name, "all")] for name in ("phase", "step-rules"))
    left = row["failed"] - row["too_early"]
    said = (
        f"{row['too_early']} of their {row['failed']} failures come too early for that, and {row['early']} of the other"
    )
    assert f"{said} {left} are read within the warm-up or before" in TEXT
    assert other["early"] == other["failed"] - other["too_early"]
    assert "but all failures that can be read are read within the warm-up there" in TEXT


def test_the_learning_rate_tells_it_better() -> None:
    ess, rate = area("and method"), area("and method", signal="lr")
    each = [area("and method", task)["value"] for task in ("chain", "walk")]
    said = (
        "There ESS has AUROC {} ({:.2f} on `chain`, {:.2f} on `walk`) and the learning rate, which is known before the "
        "run, {:.2f}: ESS minus it is {}."
    )
    gap, apart = (RIVALS.loc[("phase", controls, "lr")] for controls in ("and method", "and method, another seed"))
    assert said.format(interval_of(ess), *each, rate["value"], interval_of(gap.loc["all"], digits=3)) in TEXT
    assert gap["verdict"].to_dict() == {"all": "less", "chain": "undecided", "walk": "undecided"}
    assert "the learning rate tells it better; on each task alone this is undecided.**" in TEXT
    assert f"(not registered: {interval_of(apart.loc['all'], digits=3)})" in TEXT
    assert apart.loc["all", "verdict"] == "undecided"
    other = RIVALS.loc[("step-rules", "and method", "lr", "all")]
    assert other["verdict"] == "equivalent"
    assert min(other["ess"], other["its"]) > 0.95
    assert f"the two are equivalent ({interval_of(other, digits=3)})" in TEXT


def test_against_any_method() -> None:
    ess, rate, seeds = area("task, lag"), area("task, lag", signal="lr"), area("and learning rate")
    each = [area("task, lag", task)["value"] for task in ("chain", "walk")]
    kl, reward, known = (RIVALS.loc[("phase", "task, lag", name)] for name in ("kl", "reward_low", "lr"))
    assert "ESS has {} ({:.2f} and {:.2f})".format(interval_of(ess), *each) in TEXT
    assert f"ESS minus it is {interval_of(kl.loc['all'], digits=3)}, equivalent, on `chain` alone undecided." in TEXT
    assert kl["verdict"].to_dict() == {"all": "equivalent", "chain": "undecided", "walk": "equivalent"}
    assert f"The learning rate has {rate['value']:.2f} there;" in TEXT
    assert f"undecided after correction ({interval_of(known.loc['all'], digits=3)})" in TEXT
    assert f"as it is of a low training reward ({interval_of(reward.loc['all'], digits=3)})." in TEXT
    assert known.loc["all", "verdict"] == reward.loc["all", "verdict"] == "undecided"
    assert f"Among seeds of one configuration ESS has {interval_of(seeds)}." in TEXT
    assert f"ESS, 20 updates ahead, has AUROC {area('and method')['value']:.2f}" in CHANGES
    assert f"Against runs of any method they have {ess['value']:.2f} and {rate['value']:.2f}, undecided." in CHANGES


def test_the_alarms() -> None:
    rates = SPEAKS["false_per_1000"]
    parts = pd.read_csv(STUDIES / "calibration" / "parts.csv").set_index("signal").loc["any of them"]
    calibrated = interval_of(parts, "false_per_1000", 1)
    assert len(SPEAKS) == 4
    for text in (TEXT, MONITOR):
        assert f"{rates.min():.1f} to {rates.max():.1f} times per 1,000 updates, against {calibrated} there" in text
    assert set(SPEAKS["verdict"]) == {"broken"}
    assert set(SPEAKS.loc[SPEAKS["batch"] < 128, "batch"]) == {32, 64}
    each = EACH.set_index(["signal", "study"])["false_per_1000"]
    small = SPEAKS.index[SPEAKS["batch"] < 128]
    assert len(small) == 3
    drops = each.loc["reward_drop"]
    assert "(2.8 to 9.3)" in TEXT
    assert (drops[small].round(1).min(), drops[small].round(1).max()) == (2.8, 9.3)
    assert (drops[small] > 0.9 * rates[small]).all()
    assert (each.loc["ess"][small] == 0).all()
    assert f"`reward_drop` has {drops['phase']:.1f} and ESS {each.loc[('ess', 'phase')]:.1f}." in TEXT


def test_the_other_seeds_say_the_same() -> None:
    table = pd.read_csv(STUDIES / "configurations" / "again_rivals.csv")
    place = {"seeds": "0 to 3", "task": "all", "controls": "and method", "rival": "lr"}
    (row,) = table[(table[list(place)] == pd.Series(place)).all(axis=1)].to_dict("records")
    gap = f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
    assert f"Four other seeds, read later and by themselves, say the same: {gap};" in TEXT
    apart = table.query("seeds == '0 to 3' and controls == 'and method, another seed' and task == 'all'").iloc[0]
    gap = f"{apart['value']:.3f} [{apart['low']:.3f}, {apart['high']:.3f}]"
    assert f"*less* on `walk` too, and against controls of other seeds ({gap})." in TEXT
    walk = table.query("seeds == '0 to 3' and controls == 'and method' and task == 'walk'").iloc[0]
    assert apart["verdict"] == walk["verdict"] == "less"
    assert row["verdict"] == "less" == RIVALS.loc[("phase", "and method", "lr", "all"), "verdict"]
