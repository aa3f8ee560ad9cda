"""Alarms on held-out grids: nothing of a grid tunes them, words are as registered, tables follow from what ships."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from alarm_grids import tables
from alarm_grids.grids import ALIKE, FAILING, GRIDS, Pool, pool, unpacked
from alarm_grids.judging import ONE, SEVERAL, STRICT, _compared, contrasts, judged, means, promised

from vcpo_bench.analysis.calibrating.runs import Study
from vcpo_bench.analysis.calibrating.tune import at_most, tune
from vcpo_bench.analysis.monitoring.signal import SIGNALS
from vcpo_bench.analysis.prediction.alarm_outcomes import clock
from vcpo_bench.analysis.prediction.panel import Panel
from vcpo_bench.errors import UsageError

HEALTHY, FAILED = 40, 20
SHIPPED = tables.FOLDER / "held_out.csv"


def grid(name: str, level: float = 0.0, updates: int = 60, method: str = "") -> Study:
    """A made-up grid of configurations with one run each: `ess` is noise, and rises 30 updates before a failure."""
    rng = np.random.default_rng(sum(map(ord, name)))
    number = HEALTHY + FAILED
    failed = np.arange(number) < FAILED
    values = level + rng.normal(size=(number, updates))
    values[failed, updates - 35 :] += 6.0
    onset = np.where(failed, updates - 5.0, np.inf)
    runs = pd.DataFrame({"key": [f"{name}{i}" for i in range(number)], "task": "walk", "regime": "fifo", "seed": 0})
    runs = runs.assign(method=method or name, staleness=16, lr=1e-4 * (1 + np.arange(number)))
    runs = runs.assign(event=np.where(failed, "collapse", "healthy"), failed=failed, steps_done=updates)
    panel = Panel(runs, {"ess": values}, onset, onset, np.full(number, float(updates)), 10)
    nothing = np.zeros(number)
    kind = runs["task"].to_numpy(dtype=object)
    return Study(panel, np.arange(number), kind, ~failed, nothing > 0, nothing, {}, "any", name)


def three(**other: float) -> dict[str, Study]:
    named = {name: grid(name, other.get(name.replace("-", "_"), 0.0)) for name in FAILING[:3]}
    return named | {"cures": grid("cures", other.get("cures", 0.0), updates=80)}


def of(table: pd.DataFrame, held_out: str, tuning: str) -> "pd.Series[float]":
    own = table[(table["held_out"] == held_out) & (table["tuning"] == tuning)]
    return own.iloc[0]


def test_runs_of_several_lengths_keep_their_clocks() -> None:
    studies = three()
    whole = pool(studies)
    assert whole.given.study.panel.length == 80
    for name, study in studies.items():
        own, known = clock(study.panel), whole.grid == name
        for moment in ("lead", "at_risk", "timely", "peaceful"):
            merged = getattr(whole.given.time, moment)[known]
            assert np.array_equal(merged[:, : study.panel.length], getattr(own, moment))
        assert not whole.given.time.at_risk[known][:, study.panel.length :].any()
    assert np.unique(whole.given.study.configuration).size == len(whole.grid)


def test_neither_the_grid_nor_its_configurations_tune() -> None:
    studies = {"phase": grid("phase"), "boundary": grid("boundary"), "cures": grid("cures", method="phase")}
    whole = pool(studies)
    assert set(whole.grid[whole.tuning("phase", list(studies))]) == {"boundary"}  # cures has the same configurations
    assert set(whole.grid[whole.tuning("boundary", list(studies))]) == {"phase", "cures"}
    assert set(whole.grid[whole.tuning("boundary", ["phase"])]) == {"phase"}


def test_alarms_hold_on_a_grid_like_the_others_and_break_on_another() -> None:
    studies = three(cures=8.0)
    table = judged(studies, pool(studies))
    assert of(table, "phase", ONE)["healthy_alarmed"] < 0.3
    assert of(table, "phase", ONE)["recall"] > 0.8 > of(table, "phase", ONE)["random"]
    assert of(table, "cures", SEVERAL)["healthy_alarmed"] == 1.0
    assert np.isnan(of(table, "cures", SEVERAL)["recall"])  # it is no grid whose failures are judged
    assert set(table.loc[table["held_out"] == "phase", "tuned_on"]) >= {"all others", "calibration", "boundary"}


def test_strict_alarms_hold_in_every_grid_that_tunes() -> None:
    studies = three(boundary=1.5)  # pooled, one grid may have all the false alarms
    whole = pool(studies)
    train = whole.tuning("phase", list(studies))
    shares = {SEVERAL: _shares(whole, train, strict=False), STRICT: _shares(whole, train, strict=True)}
    assert max(shares[SEVERAL]) > 0.1 >= max(shares[STRICT])


def _shares(whole: Pool, train: np.ndarray, strict: bool) -> list[float]:
    """Share of healthy training runs alarmed, in each grid."""
    parts = [train & whole.given.study.healthy & (whole.grid == name) for name in dict.fromkeys(whole.grid[train])]
    detectors = at_most(whole.given, train, parts) if strict else tune(whole.given, train)
    alarmed = np.zeros(len(train), dtype=bool)
    for one in detectors:
        alarmed |= whole.given.peaks[one.signal][one.window, one.persistence] > one.threshold
    return [float(alarmed[part].mean()) for part in parts]


def test_no_detectors_where_a_set_is_empty() -> None:
    whole = pool(three())
    nobody = np.zeros(len(whole.grid), dtype=bool)
    assert at_most(whole.given, ~nobody, [nobody]) == []
    assert tune(whole.given, nobody) == []
    assert "ess" in SIGNALS.kinds


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.01, 0.09, "kept"), (0.11, 0.3, "broken"), (0.05, 0.2, "undecided")]
)
def test_what_is_said_of_the_promise(low: float, high: float, word: str) -> None:
    assert promised(low, high) == word


@pytest.mark.parametrize(
    ("low90", "high90", "low", "high", "p", "word"),
    [
        (-0.04, 0.04, -0.05, 0.05, 0.9, "equivalent"),
        (0.01, 0.04, 0.005, 0.045, 0.01, "equivalent"),
        (0.02, 0.2, 0.01, 0.21, 0.03, "higher"),
        (-0.2, -0.02, -0.21, -0.01, 0.03, "lower"),
        (0.02, 0.2, 0.01, 0.21, 0.07, "undecided"),
        (-0.2, 0.2, -0.3, 0.3, 0.9, "undecided"),
    ],
)
def test_what_is_said_of_a_difference(
    low90: float, high90: float, low: float, high: float, p: float, word: str
) -> None:
    row = {"low90": low90, "high90": high90, "low": low, "high": high, "p_holm": p, "difference": (low + high) / 2}
    assert _compared(row) == word


def test_each_grid_counts_once() -> None:
    studies = three(phase=0.5)
    table = judged(studies, pool(studies))
    mean = means(table).set_index(["tuning", "rate"])
    singles = table[table["tuning"] == ONE].groupby("held_out")["healthy_alarmed"].mean()
    assert mean.loc[(ONE, "healthy_alarmed"), "mean"] == pytest.approx(singles.mean())
    several = table[table["tuning"] == SEVERAL].set_index("held_out")["healthy_alarmed"]
    first = contrasts(table).iloc[0]
    assert first["contrast"] == f"{SEVERAL} - {ONE}"
    assert first["difference"] == pytest.approx((several - singles).mean())


def test_a_folder_that_exists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name a folder that does not"):
        unpacked(tmp_path)


def test_the_shipped_means_and_contrasts_follow_from_the_rows() -> None:
    table = pd.read_csv(SHIPPED)
    assert set(table["held_out"]) == set(GRIDS) > set(ALIKE) | set(FAILING)
    for name, made in tables.follow(table).items():
        ships = pd.read_csv(tables.FOLDER / f"{name}.csv")
        pd.testing.assert_frame_equal(made.replace("", np.nan), ships, check_dtype=False, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_the_rows_follow_from_the_updates_that_ship(tmp_path: Path) -> None:
    studies = unpacked(tmp_path / "grids")
    made = judged(studies, pool(studies)).drop(columns="detectors")
    pd.testing.assert_frame_equal(made, pd.read_csv(SHIPPED).drop(columns="detectors"), check_dtype=False, rtol=1e-4)
