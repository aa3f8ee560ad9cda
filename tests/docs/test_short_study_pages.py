"""What the pages of the short studies say by hand is recomputed from what ships with them."""

import pandas as pd
import pytest
from page_prose import STUDIES, prose
from run_archives.archive import read
from short_studies.studies.cures import STUDY

from vcpo_bench.records import STEPS_FILE

SIXTEEN, RULES = STUDIES / "sixteen-seeds", STUDIES / "step-rules"


def test_the_mean_step_of_sixteen_seeds() -> None:
    scales = {}
    for method in ("vcpo", "vcpo-ess-off-lr-matched", "vcpo-ess-off-lr-shuffled"):
        steps = read(SIXTEEN / "updates" / f"walk_{method}_fifo_64.zip").tables[STEPS_FILE].to_pandas()
        scales[method] = steps["step_scale"].mean(), steps.loc[steps["step"] < 64, "step_scale"].mean()
    means = [mean for mean, _ in scales.values()]
    assert means == pytest.approx([means[0]] * 3)
    said = "over all 300 updates VCPO's mean is {:.2f}, the same as that of the two (it is {:.2f} while the"
    assert said.format(means[0], scales["vcpo"][1]) in prose(SIXTEEN / "README.md")


def test_runs_of_step_rules_that_were_made_again() -> None:
    place = ["task", "method", "lr", "seed"]
    old, new = (pd.read_csv(RULES / f"{name}.csv") for name in ("replaced", "runs"))
    both = old.merge(new, on=place, suffixes=("_old", ""))
    assert len(both) == len(old)
    apart = (both["final_reward"] - both["final_reward_old"]).abs()
    assert (both["failed"] == both["failed_old"]).all()
    said = (
        f"{len(old)} runs of the first five seeds, made before updates were kept, were made again for them, on other "
        f"machines, and replace the earlier rows ([`replaced.csv`](replaced.csv)): {(apart == 0).sum()} final rewards "
        f"are the same, {(apart > 0).sum()} differ, by at most {apart.max():.3f}, and no fate does."
    )
    assert said in prose(RULES / "README.md")


def test_runs_of_every_method_that_were_made_again() -> None:
    said, moved = again("every-method", ["method", "staleness", "lr", "seed"])
    assert set(moved["event_old"]) == {"healthy"}
    assert set(moved["event"]) == {"stall"}
    text = prose(STUDIES / "every-method" / "README.md")
    assert f"{said}, {len(moved)} runs went from healthy to stall, and no fate differs." in text


def test_runs_of_cures_that_were_made_again() -> None:
    said, _ = again("cures", ["task", "method", "regime", "staleness", "seed"])
    old, verdicts = (
        pd.read_csv(STUDIES / "cures" / "replaced.csv"),
        pd.read_csv(STUDIES / "cures" / "cures.csv")["verdict"],
    )
    assert f"{said}, and no fate differs. No verdict of this page moved." in prose(STUDIES / "cures" / "README.md")
    runs = pd.read_csv(STUDIES / "cures" / "runs.csv").drop(columns="final_reward")
    earlier = runs.merge(old[["task", "method", "regime", "staleness", "seed", "final_reward"]], how="left")
    made = STUDY.tables(earlier)
    assert list(made["cures"]["verdict"]) == list(verdicts)
    assert list(made["harm"]["verdict"]) == list(pd.read_csv(STUDIES / "cures" / "harm.csv")["verdict"])


def again(study: str, place: list[str]) -> tuple[str, pd.DataFrame]:
    """What a page says of runs that were made again, all of them, and those that ended in another event."""
    old, new = (pd.read_csv(STUDIES / study / f"{name}.csv") for name in ("replaced", "runs"))
    both = old.merge(new, on=place, suffixes=("_old", ""), validate="one_to_one")
    assert len(both) == len(old) == len(new)
    apart = (both["final_reward"] - both["final_reward_old"]).abs()
    assert (both["failed"] == both["failed_old"]).all()
    said = (
        f"All {len(old)} runs were made again for it on 2026-11-25, on another machine, and replace the earlier rows "
        f"([`replaced.csv`](replaced.csv)): {(apart == 0).sum()} final rewards are the same, {(apart > 0).sum()} "
        f"differ, by at most {apart.max():.3f}"
    )
    return said, both[both["event"] != both["event_old"]]
