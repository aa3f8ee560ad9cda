"""What the page on calibration says of the runs made again is in the tables of both makings."""

import json
from pathlib import Path
from typing import Any

import make_calibration
import pandas as pd
import pytest
from calibration_candidates import by_candidates
from page_prose import STUDIES, prose
from run_archives.unpack import unpack_folder

from vcpo_bench.analysis.calibrating.report import calibrate
from vcpo_bench.analysis.calibrating.runs import study_of_results
from vcpo_bench.analysis.results import load

STUDY = STUDIES / "calibration"
AGAIN = STUDY / "again"
TEXT = prose(STUDY / "README.md")
MONITOR = prose(STUDIES.parent / "monitor.md")
PLACE = ["task", "method", "staleness", "lr", "seed"]
CANDIDATES = pd.read_csv(AGAIN / "candidates.csv").set_index(["candidates", "held_out"])
DEALS = pd.read_csv(AGAIN / "deals.csv")
CHANGES = prose(STUDIES.parents[1] / "CHANGELOG.md")


def share(row: "pd.Series[float]", name: str) -> str:
    """A share with its interval in whole percent: `17% [11, 25]`."""
    value, low, high = (100 * row[f"{name}{side}"] for side in ("", "_low", "_high"))
    return f"{value:.0f}% [{low:.0f}, {high:.0f}]"


def union(table: Path) -> "pd.Series[float]":
    return pd.read_csv(table).set_index("signal").loc["any of them"]


def detectors(document: str) -> list[dict[str, Any]]:
    return list(json.loads(document)["detectors"])


def test_which_runs_end_as_before() -> None:
    first, again = (pd.read_csv(folder / "cells.csv") for folder in (STUDY, AGAIN))
    both = first.merge(again, on=PLACE, suffixes=("", "_again"), validate="one_to_one")
    assert len(both) == len(first) == 180
    other = both[both["event"] != both["event_again"]]
    assert f"{len(both) - len(other)} end as before (a stall is now healthy, a dip is a stall)" in TEXT
    ends = set(zip(other["event"], other["event_again"], strict=True))
    assert ends == {("stall", "healthy"), ("transient dip", "stall")}
    assert (both["onset"].notna() == both["onset_again"].notna()).all()
    assert f"the same {both['onset'].notna().sum()} fail." in TEXT
    assert f"{len(both) - len(other)} end as before." in CHANGES


def test_both_makings_side_by_side() -> None:
    mean, tasks = union(AGAIN / "parts.csv"), union(AGAIN / "transfer.csv")
    first, first_tasks = union(STUDY / "parts.csv"), union(STUDY / "transfer.csv")
    older = CANDIDATES.loc["first making"]
    said = share(mean, "healthy_alarmed")
    assert f"dealt folds: healthy runs alarmed | | {said} |" in TEXT.replace("mean of ten ways to deal the", "dealt")
    one = share(DEALS.iloc[0], "healthy_alarmed")
    assert f"as registered: healthy runs alarmed | {share(first, 'healthy_alarmed')} | {one} |" in TEXT
    assert f"... failures announced | | {share(mean, 'recall')} |" in TEXT
    assert f"chose from: healthy runs alarmed | | {share(older.loc['configurations'], 'healthy_alarmed')} |" in TEXT
    both = f"| {share(first_tasks, 'healthy_alarmed')} | {share(tasks, 'healthy_alarmed')} |"
    assert f"tasks held out: healthy runs alarmed {both}" in TEXT
    assert f"chose from: healthy runs alarmed | | {share(older.loc['tasks'], 'healthy_alarmed')} |" in TEXT
    assert f"made again) it is {said}, averaged over ten ways" in TEXT.replace("](#made-again)", ")").replace(
        "[made", "made"
    )
    assert f"it is {said}; how the" in MONITOR
    assert f"wrong in {said} of healthy runs of held-out configurations" in CHANGES
    assert mean["healthy_alarmed_low"] < 0.1 < mean["healthy_alarmed_high"]


def test_the_deals() -> None:
    alarmed = DEALS["healthy_alarmed"]
    assert len(DEALS) == 10
    assert f"the share is {alarmed.min():.0%} to {alarmed.max():.0%} in the same runs" in TEXT
    assert f"from {alarmed.min():.0%} to {alarmed.max():.0%}" in MONITOR
    assert f"one alone said {alarmed.min():.0%} in runs where another said {alarmed.max():.0%}" in CHANGES
    assert f"after the {alarmed[0]:.0%} were seen" in TEXT
    noted = prose(STUDY / "registration-2.md")
    assert f"any of the detectors fires in {share(DEALS.iloc[0], 'healthy_alarmed')} of healthy runs" in noted


def test_signals_to_choose_from() -> None:
    tasks = CANDIDATES.xs("tasks", level="held_out")["healthy_alarmed"]
    assert f"wrong in {tasks['all']:.0%} of healthy runs, and without them in {tasks['first making']:.0%}" in TEXT
    row = pd.read_csv(AGAIN / "transfer.csv").set_index("signal")
    wrong = row["healthy_alarmed"] * row["n_healthy"]
    assert wrong["negative_surprisal"] == pytest.approx(25)
    assert wrong["any of them"] == pytest.approx(41)
    assert "`negative_surprisal` alone is wrong in 25 of these 41 runs" in TEXT
    said = f"held-out tasks it is {tasks['all']:.0%} with the signals there are now, and {tasks['first making']:.0%}"
    assert said in CHANGES


def test_the_detectors_that_are_chosen_again() -> None:
    packaged = json.loads((Path(__file__).parents[2] / "analysis/monitoring/default_detectors.json").read_text())
    chosen = CANDIDATES.loc[("first making", "tasks"), "detectors"]
    assert "the same six are chosen as before. All but `ess` have the same window, and thresholds within 1%." in TEXT
    for text in chosen.split("; "):
        name, rest = text.rstrip(")").split("(")
        values = {key: float(value) for key, value in (one.split("=") for one in rest.split(","))}
        one = next(entry for entry in packaged["detectors"] if entry["signal"] == name)
        alike = one["window"] == values["window"]
        assert alike == (name != "ess")
        assert not alike or values["threshold"] == pytest.approx(one["threshold"], rel=0.01)
    assert len(chosen.split("; ")) == len(packaged["detectors"]) == 6


@pytest.mark.slow
def test_the_tables_follow_from_the_updates_that_ship(tmp_path: Path) -> None:
    unpack_folder(STUDY / "updates", tmp_path)
    pd.testing.assert_frame_equal(make_calibration.cells(tmp_path), pd.read_csv(AGAIN / "cells.csv"))
    candidates = by_candidates(tmp_path).drop(columns="detectors")
    pd.testing.assert_frame_equal(candidates, CANDIDATES.reset_index().drop(columns="detectors"), rtol=1e-6)
    made = calibrate(study_of_results(load(tmp_path), make_calibration.STUDY))
    for one, shipped in zip(*map(detectors, (made.document, (AGAIN / "detectors.json").read_text())), strict=True):
        assert {**one, "threshold": 0} == {**shipped, "threshold": 0}
        assert one["threshold"] == pytest.approx(shipped["threshold"])
    for name in ("parts", "deals", "transfer", "verdict", "runs"):
        pd.testing.assert_frame_equal(getattr(made, name), pd.read_csv(AGAIN / f"{name}.csv"), rtol=1e-6)
