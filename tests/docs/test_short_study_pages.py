"""What the pages of the short studies say by hand is recomputed from what ships with them."""

import pandas as pd
import pytest
from page_prose import STUDIES, prose
from run_archives.archive import read
from short_studies.studies import cures, every_method, gspo_bounds, step_rules
from short_studies.study import Study

from vcpo_bench.records import STEPS_FILE

SIXTEEN = STUDIES / "sixteen-seeds"


def test_the_mean_step_of_sixteen_seeds() -> None:
    scales = {}
    for method in ("vcpo", "vcpo-ess-off-lr-matched", "vcpo-ess-off-lr-shuffled"):
        steps = read(SIXTEEN / "updates" / f"walk_{method}_fifo_64.zip").tables[STEPS_FILE].to_pandas()
        scales[method] = steps["step_scale"].mean(), steps.loc[steps["step"] < 64, "step_scale"].mean()
    means = [mean for mean, _ in scales.values()]
    assert means == pytest.approx([means[0]] * 3)
    said = "over all 300 updates VCPO's mean is {:.2f}, the same as that of the two (it is {:.2f} while the"
    assert said.format(means[0], scales["vcpo"][1]) in prose(SIXTEEN / "README.md")


@pytest.mark.parametrize("study", [cures.STUDY, every_method.STUDY, step_rules.STUDY], ids=lambda study: study.name)
def test_runs_that_were_made_again(study: Study) -> None:
    """The page counts them, and no fate differs."""
    runs, both = made_again(study)
    apart = (both["final_reward"] - both["final_reward_old"]).abs()
    assert (both["failed"] == both["failed_old"]).all()
    text = prose(study.folder / "README.md")
    whole = len(both) == len(runs)
    assert f"{'All ' if whole else ''}{len(both)} runs" in text
    same, other = (apart == 0).sum(), (apart > 0).sum()
    said = f"([`replaced.csv`](replaced.csv)): {same} final rewards are the same, {other} differ, by at most"
    assert f"and replace the earlier rows {said} {apart.max():.3f}" in text


def test_events_of_every_method_that_moved() -> None:
    _, both = made_again(every_method.STUDY)
    moved = both[both["event"] != both["event_old"]]
    assert set(moved["event_old"]) == {"healthy"}
    assert set(moved["event"]) == {"stall"}
    assert f"{len(moved)} runs went from healthy to stall, and no fate differs." in prose(
        every_method.STUDY.folder / "README.md"
    )


@pytest.mark.parametrize("study", [cures.STUDY, step_rules.STUDY], ids=lambda study: study.name)
def test_no_verdict_moved_with_the_runs_that_were_made_again(study: Study) -> None:
    """The tables of the earlier rewards, with everything else of today, have the verdicts that ship."""
    runs, both = made_again(study)
    earlier = runs.copy()
    earlier.loc[both["row"], "final_reward"] = both["final_reward_old"].to_numpy()
    assert not earlier["final_reward"].equals(runs["final_reward"])
    told = {name: table["verdict"] for name, table in study.tables(earlier).items() if "verdict" in table}
    assert told
    for name, verdicts in told.items():
        assert list(verdicts) == list(pd.read_csv(study.folder / f"{name}.csv")["verdict"]), name


def made_again(study: Study) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All runs of a study, and those that were made again: `row` in the first, and what had been recorded as `_old`."""
    old, runs = (pd.read_csv(study.folder / f"{name}.csv") for name in ("replaced", "runs"))
    place = [name for name in study.place if name in old]
    both = old.merge(runs.reset_index(names="row"), on=place, suffixes=("_old", ""), validate="one_to_one")
    assert len(both) == len(old)
    return runs, both


def test_what_the_findings_say_of_the_bounds_of_gspo() -> None:
    folder = STUDIES / "gspo-bounds"
    table = pd.read_csv(folder / "shares.csv").set_index(["lag_asked", "method"]).sort_index()
    runs = pd.read_csv(folder / "runs.csv")
    text = prose(STUDIES.parent / "findings.md").split("**Bounds of GSPO.**")[1].split(" **Under rules")[0]
    assert f"{len(runs)} runs on three tasks with {runs['seed'].nunique()} seeds, at 3e-4" in text

    def span(lag: int, method: str) -> str:
        shares = 100 * table.loc[(lag, method), "clipped"]
        return f"{shares.min():.0f} to {shares.max():.0f}%"

    def within(lag: int) -> list[str]:
        own = table.loc[lag].groupby(level="method", sort=False)["verdict"].agg(set)
        return [method for method in gspo_bounds.METHODS if own[method] == {"within"}]

    ten, wide, used = gspo_bounds.METHODS[1], gspo_bounds.METHODS[4], gspo_bounds.METHODS[3]
    assert f"the published bounds clip {span(1, 'gspo')}, and bounds ten times as wide {span(1, ten)}:" in text
    assert within(1)[0] == ten
    assert (
        f"At lag 16 they clip {span(16, ten)}, and only `{wide}` is within on every task, with {span(16, wide)}."
        in text
    )
    assert within(16) == [wide]
    most = 100 * table.loc[(1, used), "clipped"].max()
    assert f"`{used}`, clip at most {most:.0f}% at lag 1 and {span(16, used)} at lag 16." in text
    gaps = pd.read_csv(folder / "contrasts.csv")
    assert "lower" not in set(gaps["verdict"])
    low = gaps.loc[gaps["difference"].idxmin()]
    assert (low["task"], low["lag_asked"], low["verdict"]) == ("chain", 16, "undecided")
    gap = f"{low['difference']:.3f} [{low['low']:.3f}, {low['high']:.3f}]"
    assert f"`{low['contrast'].removesuffix(' - gspo')}`, has {gap} on `chain` at lag 16, which is undecided" in text
    counts = gaps[gaps["contrast"] == f"{wide} - gspo"]["verdict"].value_counts()
    said = f"With `{wide}` the reward is higher in {counts['higher']} of {counts.sum()} places"
    assert (
        f"{said} (three tasks, two lags), equivalent in {counts['equivalent']} and undecided in {counts['undecided']}."
        in text
    )


def test_what_the_findings_say_of_the_default_run() -> None:
    folder = STUDIES / "default-run"
    text = prose(STUDIES.parent / "findings.md").split("**The default run.**")[1].split(" **The phase law")[0]
    runs = pd.read_csv(folder / "runs.csv")
    assert (
        f"on {runs['seed'].nunique()} seeds, {len(runs)} runs, registered beforehand: `walk` at 3e-4, 300 updates."
        in text
    )
    told = pd.read_csv(folder / "methods.csv").set_index(["lag_asked", "method"])
    gaps = pd.read_csv(folder / "contrasts.csv").set_index(["lag_asked", "contrast"])

    def rewards(lag: int) -> list[str]:
        return [f"{told.loc[(lag, method), 'reward']:.2f}" for method in ("vespo", "vcpo", "clip")]

    def gap(lag: int, other: str, sign: str = "") -> str:
        row = gaps.loc[(lag, f"vcpo - {other}")]
        return f"{row['difference']:{sign}.3f} [{row['low']:.3f}, {row['high']:.3f}]"

    sync = told.loc[(0, "reinforce"), "reward"]
    said = "At lag 16 VESPO ends at {}, VCPO at {} and `clip` at {}".format(*rewards(16))
    assert f"{said} (synchronous training: {sync:.2f}): VCPO minus VESPO is {gap(16, 'vespo')}" in text
    assert f"and minus `clip` {gap(16, 'clip', '+')}." in text
    said = "At lag 128 it is {}, {} and {}".format(*rewards(128))
    assert f"{said}, with VCPO minus VESPO {gap(128, 'vespo')} and VCPO and `clip` equivalent within 0.05." in text
    verdicts = gaps["verdict"].unstack()
    assert verdicts.loc[16].to_dict() == {"vcpo - clip": "higher", "vcpo - vespo": "lower", "clip - vespo": "lower"}
    assert verdicts.loc[128].to_dict() == {
        "vcpo - clip": "equivalent",
        "vcpo - vespo": "lower",
        "clip - vespo": "lower",
    }
    assert set(verdicts.loc[1]) == {"equivalent"}
    fell = told.xs("reinforce", level="method")
    assert list(fell.loc[[16, 128], "failed"]) == ["16 of 16", "16 of 16"]
    place = ["lag_asked", "contrast"]
    waves = pd.read_csv(folder / "waves.csv").set_index(place).groupby("wave")["verdict"]
    first, second = (own for _, own in waves)
    same = f"alone they give the verdict of those in {(first == second).sum()} of {len(first)} contrasts."
    assert f"Half of the seeds were registered after the page of the others was out; {same}" in text
    said = f"fails in 16 of 16 runs at lag 16; {fell.loc[16, 'rebound']} of them are no longer down at the end."
    assert said in text
    first, last = fell.loc[128, ["found_first", "found_last"]].astype(int)
    assert f"but between updates {first} and {last}, when the lag is {first} to {last}: no run reaches" in text
    assert last < 128
