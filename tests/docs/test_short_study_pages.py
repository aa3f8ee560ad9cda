"""What the pages of the short studies say by hand is recomputed from what ships with them."""

import pandas as pd
import pytest
from page_prose import STUDIES, prose
from run_archives.archive import read
from short_studies.studies import cures, every_method, step_rules
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
