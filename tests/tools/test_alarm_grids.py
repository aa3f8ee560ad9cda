"""Alarms on held-out grids: nothing of a grid tunes them, words are as registered, tables follow from what ships."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from alarm_grids import tables
from alarm_grids.answers import ANNOUNCED, MARGIN, compared, contrasts, means, promised, without
from alarm_grids.grids import FAILING, GRIDS, HORIZON, Grid, Pool, cut, grid_of, grids_in, only, pool
from alarm_grids.judging import APART, ONE, PACKAGED, SEVERAL, STRICT, judged, rates_on
from configuration_study.design import STUDIES
from configuration_study.panels import lagged
from page_prose import prose
from run_archives.unpack import unpack_folder

from vcpo_bench.analysis.calibrating.runs import Study
from vcpo_bench.analysis.calibrating.tune import at_most, tune
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.prediction.panel import Panel
from vcpo_bench.analysis.prediction.twins import HISTORY
from vcpo_bench.analysis.results import load
from vcpo_bench.errors import UsageError

HEALTHY, FAILED, UPDATES = 40, 20, 80
SHIPPED = tables.FOLDER / "held_out.csv"


def made(name: str, level: float = 0.0, method: str = "", seed: int = 0, also: str = "") -> Grid:
    """A made-up grid of configurations with one run each: `ess` is noise, and rises 30 updates before a failure."""
    rng = np.random.default_rng(sum(map(ord, name)))
    number = HEALTHY + FAILED
    failed = np.arange(number) < FAILED
    values = level + rng.normal(size=(number, UPDATES))
    values[failed, 20:50] += 6.0
    onset = np.where(failed, 50.0, np.inf)
    onset[0] = 75.0  # too late for the horizon
    runs = pd.DataFrame({"key": [f"{name}{i}" for i in range(number)], "task": "walk", "regime": "fifo", "seed": seed})
    runs = runs.assign(method=method or name, staleness=16, lr=1e-4 * (1 + np.arange(number)))
    runs = runs.assign(event=np.where(failed, "collapse", "healthy"), failed=failed, steps_done=UPDATES)
    signals = dict.fromkeys(all_signals(), np.full_like(values, np.nan)) | {"ess": values}
    signals |= {also: np.where(np.arange(number)[:, None] < 9, np.nan, values)} if also else {}
    panel = Panel(runs, signals, onset, onset, np.full(number, float(UPDATES)), 10)
    nothing = np.zeros(number)
    kind = runs["task"].to_numpy(dtype=object)
    study = Study(panel, np.arange(number), kind, ~failed, nothing > 0, nothing, {}, "any", name)
    return Grid(cut(study), runs["key"].to_numpy(dtype=object))


def four(**levels: float) -> dict[str, Grid]:
    names = (*FAILING[:3], "cures")
    return {name: made(name, levels.get(name, 0.0), seed=i) for i, name in enumerate(names)}


def of(table: pd.DataFrame, held_out: str, tuning: str) -> "pd.Series[float]":
    own = table[(table["held_out"] == held_out) & (table["tuning"] == tuning)]
    return own.iloc[0]


def test_only_the_first_updates_are_read() -> None:
    study = made("phase").study
    assert study.panel.length == HORIZON
    assert study.panel.failed.sum() == FAILED - 1
    assert not study.healthy[0], "a later failure is neither"


def test_neither_the_grid_nor_its_configurations_nor_its_copies_tune() -> None:
    grids = {"phase": made("phase"), "boundary": made("boundary"), "cures": made("cures", method="phase")}
    whole = pool(grids)
    assert set(whole.grid[whole.tuning("phase", list(grids))]) == {"boundary"}  # cures has the same configurations
    assert set(whole.grid[whole.tuning("boundary", list(grids))]) == {"phase", "cures"}
    assert set(whole.grid[whole.tuning("boundary", ["phase"])]) == {"phase"}
    assert not whole.tuning("boundary", list(grids), apart=True).any(), "all have task and seed in common"
    copied = replace(grids["boundary"], history=np.roll(grids["phase"].history, 1))
    known = pool(grids | {"boundary": copied}).tuning("boundary", ["phase"])
    assert not known.any()


def test_signals_that_a_grid_does_not_record_are_no_candidates() -> None:
    whole = pool({"phase": made("phase", also="kl"), "boundary": made("boundary", also="kl")})
    assert set(whole.given.levels) == {"ess"}  # 9 of 60 runs are without
    full = {name: made(name, also="kl") for name in ("phase", "boundary")}
    kept = {name: only(grid, np.arange(HEALTHY + FAILED) >= 9) for name, grid in full.items()}
    assert set(pool(kept).given.levels) == {"ess", "kl"}


def test_alarms_hold_on_a_grid_like_the_others_and_break_on_another() -> None:
    grids = four(cures=8.0)
    table = judged(grids, pool(grids))
    assert of(table, "phase", ONE)["healthy_alarmed"] < 0.3
    assert of(table, "phase", ONE)["recall"] > 0.8 > of(table, "phase", ONE)["random"]
    assert of(table, "cures", SEVERAL)["healthy_alarmed"] == of(table, "cures", SEVERAL)["not_failing_alarmed"] == 1.0
    assert np.isnan(of(table, "cures", SEVERAL)["recall"])  # it is no grid whose failures are judged
    assert set(table.loc[table["held_out"] == "phase", "tuned_on"]) == {"all others", "calibration", "boundary"}
    assert set(table["tuning"]) == {SEVERAL, STRICT, ONE, APART, PACKAGED}
    assert "calibration" not in set(table.loc[table["tuning"] == PACKAGED, "held_out"])


def test_no_detector_never_fires() -> None:
    row = rates_on(made("phase").study, [])
    assert row["detectors"] == ""
    assert row["healthy_alarmed"] == row["recall"] == row["random"] == 0.0


def test_strict_alarms_hold_in_every_grid_that_tunes() -> None:
    grids = four(boundary=1.5)  # pooled, one grid may have all the false alarms
    whole = pool(grids)
    train = whole.tuning("phase", list(grids))
    assert max(_shares(whole, train, strict=False)) > 0.1 >= max(_shares(whole, train, strict=True))


def _shares(whole: Pool, train: np.ndarray, strict: bool) -> list[float]:
    """Share of healthy training runs alarmed, in each grid."""
    parts = [train & whole.given.study.healthy & (whole.grid == name) for name in dict.fromkeys(whole.grid[train])]
    detectors = at_most(whole.given, train, parts) if strict else tune(whole.given, train)
    alarmed = np.zeros(len(train), dtype=bool)
    for one in detectors:
        alarmed |= whole.given.peaks[one.signal][one.window, one.persistence] > one.threshold
    return [float(alarmed[part].mean()) for part in parts]


def test_no_detectors_where_there_is_nothing_to_tune_on() -> None:
    whole = pool(four())
    nobody = np.zeros(len(whole.grid), dtype=bool)
    assert at_most(whole.given, ~nobody, [nobody]) == at_most(whole.given, ~nobody, []) == []
    assert tune(whole.given, nobody) == []


@pytest.mark.parametrize(
    ("low", "high", "speaks", "word"),
    [
        (0.01, 0.09, True, "kept"),
        (0.01, 0.09, False, "kept, but says nothing"),
        (0.11, 0.3, False, "broken"),
        (0.05, 0.2, True, "undecided"),
    ],
)
def test_what_is_said_of_the_promise(low: float, high: float, speaks: bool, word: str) -> None:
    assert promised(low, high, speaks) == word


@pytest.mark.parametrize(
    ("low90", "high90", "low", "high", "word"),
    [
        (-0.02, 0.02, -0.03, 0.03, "equivalent"),
        (0.01, 0.02, 0.005, 0.025, "equivalent"),
        (0.02, 0.2, 0.01, 0.21, "higher"),
        (-0.2, -0.02, -0.21, -0.01, "lower"),
        (-0.2, 0.2, -0.3, 0.3, "undecided"),
    ],
)
def test_what_is_said_of_a_difference(low90: float, high90: float, low: float, high: float, word: str) -> None:
    assert compared({"low90": low90, "high90": high90, "low": low, "high": high}) == word


def test_each_grid_counts_once() -> None:
    grids = four(phase=0.5)
    table = judged(grids, pool(grids))
    mean = means(table).set_index(["tuning", "rate"])
    singles = table[table["tuning"] == ONE].groupby("held_out")["healthy_alarmed"].mean()
    assert mean.loc[(ONE, "healthy_alarmed"), "mean"] == pytest.approx(singles.mean())
    several = table[table["tuning"] == SEVERAL].set_index("held_out")
    first = contrasts(table).iloc[0]
    assert first["contrast"] == f"{SEVERAL} - {ONE}"
    assert first["mean"] == pytest.approx((several["healthy_alarmed"] - singles).mean())
    gap = (several["recall"] - several["random"]).mean()
    assert mean.loc[(SEVERAL, ANNOUNCED), "mean"] == pytest.approx(gap)
    left = without(table).set_index(["tuning", "left_out"])["mean"]
    assert left[SEVERAL, "phase"] == pytest.approx(several["healthy_alarmed"].drop("phase").mean())


def test_each_history_is_one_run(tmp_path: Path) -> None:
    """Rules of step sizes that never act have runs of other names."""
    unpack_folder(STUDIES / "cures" / "updates", tmp_path)
    results = lagged(load(tmp_path))
    grid = grid_of(results, "cures")
    assert len(set(grid.history)) == len(grid.history) <= len(results.cells)
    row = results.step_columns(*HISTORY).groupby("key").head(HORIZON).groupby("key")["grad_norm"].sum()
    assert row[grid.study.panel.runs["key"]].nunique() == len(grid.history)


def test_a_folder_that_exists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name a folder that does not"):
        grids_in(tmp_path)


def test_the_registration_names_the_grids_and_numbers() -> None:
    text = prose(STUDIES / "calibration" / "registration-3.md")
    assert f"the first {HORIZON} updates" in text
    assert f"the 90% interval lies within {MARGIN} of 0" in text
    for name in GRIDS:
        assert "(README.md)" in text if name == "calibration" else f"(../{name}/README.md)" in text


def test_the_shipped_means_and_contrasts_follow_from_the_rows() -> None:
    table = pd.read_csv(SHIPPED)
    assert set(table["held_out"]) == set(GRIDS) > set(FAILING)
    for name, again in tables.follow(table).items():
        ships = pd.read_csv(tables.FOLDER / f"{name}.csv")
        pd.testing.assert_frame_equal(again.replace("", np.nan), ships, check_dtype=False, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_the_rows_follow_from_the_updates_that_ship(tmp_path: Path) -> None:
    grids = grids_in(tmp_path / "grids")
    again = judged(grids, pool(grids)).drop(columns="detectors")
    pd.testing.assert_frame_equal(again, pd.read_csv(SHIPPED).drop(columns="detectors"), check_dtype=False, rtol=1e-4)
