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
CANDIDATES = pd.read_csv(AGAIN / "candidates.csv")
UNION = CANDIDATES[CANDIDATES["signal"] == "any of them"].set_index(["candidates", "held_out"])
DEALS = pd.read_csv(AGAIN / "deals.csv")
NOTED = prose(STUDY / "registration-2.md")
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


@pytest.mark.parametrize(
    ("said", "held_out", "first"),
    [
        ("configurations, as registered", "registered deal", "parts"),
        ("configurations, mean of ten deals", "configurations", ""),
        ("tasks", "tasks", "transfer"),
    ],
)
def test_both_makings_side_by_side(said: str, held_out: str, first: str) -> None:
    before = union(STUDY / f"{first}.csv") if first else None
    for start, column, rate in (
        (said, "healthy runs alarmed", "healthy_alarmed"),
        ("", "failures announced", "recall"),
    ):
        cells = [start, column, "" if before is None else share(before, rate)]
        cells += [share(UNION.loc[(candidates, held_out)], rate) for candidates in ("all", "first making")]
        assert " ".join(f"| {' | '.join(cells)} |".split()) in TEXT
    shipped = {"configurations": "parts", "tasks": "transfer"}
    if held_out in shipped:
        own = union(AGAIN / f"{shipped[held_out]}.csv")
        assert own["healthy_alarmed"] == pytest.approx(UNION.loc[("all", held_out), "healthy_alarmed"])


def test_what_is_said_of_the_registered_deal() -> None:
    said = share(UNION.loc[("all", "registered deal")], "healthy_alarmed")
    before = share(union(STUDY / "parts.csv"), "healthy_alarmed")
    assert f"{said} of healthy runs instead of {before}." in TEXT
    assert f"In the same grid [made again](#made-again) it is {said}." in TEXT
    mean = UNION.loc[("all", "configurations")]
    assert f"it is {said}, and {share(mean, 'healthy_alarmed')} as a mean of ten ways" in MONITOR
    assert f"wrong in {said} of healthy runs of held-out configurations (it was {before[:3]})" in CHANGES
    assert f"The mean, {share(mean, 'healthy_alarmed')}, is not shown to be above one in ten." in TEXT
    assert mean["healthy_alarmed_low"] < 0.1 < mean["healthy_alarmed_high"]
    assert f"any of the detectors fires in {said} of healthy runs" in NOTED


def test_the_deals() -> None:
    alarmed = DEALS["healthy_alarmed"]
    assert len(DEALS) == 10
    assert f"same runs ten deals of this kind say {alarmed.min():.0%} to {alarmed.max():.0%}" in TEXT
    assert f"one says {alarmed.min():.0%} in runs where another says {alarmed.max():.0%}" in CHANGES
    assert f"then the one deal says {alarmed[0]:.0%}" in NOTED
    assert alarmed.mean() == pytest.approx(UNION.loc[("all", "configurations"), "healthy_alarmed"])


def test_signals_to_choose_from() -> None:
    tasks = UNION.xs("tasks", level="held_out")["healthy_alarmed"]
    wrong_in = "wrong in {:.0%} of healthy runs of held-out tasks, and without them in {:.0%}"
    assert wrong_in.format(tasks["all"], tasks["first making"]) in TEXT
    row = pd.read_csv(AGAIN / "transfer.csv").set_index("signal")
    wrong = row["healthy_alarmed"] * row["n_healthy"]
    assert wrong["negative_surprisal"] == pytest.approx(25)
    assert wrong["any of them"] == pytest.approx(41)
    assert "`negative_surprisal` fires in 25 of these 41 runs" in TEXT
    said = f"held-out tasks it is {tasks['all']:.0%} with the signals there are now, and {tasks['first making']:.0%}"
    assert said in CHANGES


def test_the_detectors_that_are_chosen_again() -> None:
    packaged = json.loads((Path(__file__).parents[2] / "analysis/monitoring/default_detectors.json").read_text())
    chosen = UNION.loc[("first making", "tasks"), "detectors"]
    said = "the same six detectors are chosen as before. All but `ess` have the same window, and thresholds within 1%."
    assert said in TEXT
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
    pd.testing.assert_frame_equal(make_calibration.cells(load(tmp_path)), pd.read_csv(AGAIN / "cells.csv"))
    candidates = by_candidates(tmp_path).drop(columns="detectors")
    pd.testing.assert_frame_equal(candidates, CANDIDATES.drop(columns="detectors"), rtol=1e-6)
    made = calibrate(study_of_results(load(tmp_path), make_calibration.STUDY))
    for one, shipped in zip(*map(detectors, (made.document, (AGAIN / "detectors.json").read_text())), strict=True):
        assert {**one, "threshold": 0} == {**shipped, "threshold": 0}
        assert one["threshold"] == pytest.approx(shipped["threshold"])
    for name in ("parts", "deals", "transfer", "verdict", "runs"):
        pd.testing.assert_frame_equal(getattr(made, name), pd.read_csv(AGAIN / f"{name}.csv"), rtol=1e-6)
