"""The boundary study's pilot finds planted boundaries, and its runs become tables."""

from pathlib import Path

import numpy as np
import pytest
from boundary_study import alarms, design, run
from boundary_study.design import PILOT_SEEDS, PLACES, SEEDS
from boundary_study.tables import SIGNALS, Tables, outcomes

from vcpo_bench.analysis.results import load
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.run_grid import run_grid
from vcpo_bench.reports.terminal.live import PlainView
from vcpo_bench.reports.terminal.plain_console import PlainConsole


def searched(boundary: float, width: float) -> dict[tuple[float, int], bool]:
    """The runs of a place whose seeds fail above a boundary that differs between them."""
    found: dict[tuple[float, int], bool] = {}
    while runs := design.missing(found):
        for rung, seed in runs:
            found[rung, seed] = rung > boundary + width * np.random.default_rng(seed % 200).normal()
    return found


@pytest.mark.parametrize("boundary", [-2.3, -0.4, 0.2, 1.7, 3.1])
def test_the_pilot_finds_a_planted_boundary(boundary: float) -> None:
    found = searched(boundary, 0.5)
    failures = design.pilot(found)
    assert len(failures) <= design.MOST_RATES
    assert set(failures) <= {rung / 16 for rung in range(-80, 81)}
    rung = design.chosen_rung(failures)
    assert rung is not None
    assert abs(rung - boundary) < 1.0
    assert design.counts(found)
    assert len(found) == len(failures) * len(PILOT_SEEDS) + len(SEEDS)


def test_a_sharp_boundary_is_halved_and_none_is_passed_over() -> None:
    sharp = searched(0.3, 0.0)
    assert list(design.pilot(sharp)) == [0.0, 0.25, 0.375, 0.5, 1.0]
    assert design.chosen_rung(design.pilot(sharp)) == 0.3125
    assert not design.counts(sharp), "every seed fails there"
    assert list(design.pilot(searched(-9.0, 0.1))) == [-4.0, -3.0, -2.0, -1.0, 0.0]
    for far in (searched(9.0, 0.1), searched(-9.0, 0.1)):
        assert design.chosen_rung(design.pilot(far)) is None
        assert len(far) == design.MOST_RATES * len(PILOT_SEEDS), "no main run is spent on it"


@pytest.mark.parametrize(("failed", "counted"), [(6, False), (7, True), (25, True), (26, False)])
def test_a_place_counts_when_about_half_of_its_seeds_fail(failed: int, counted: bool) -> None:
    found = {(0.0, seed): seed < 102 for seed in PILOT_SEEDS}
    found |= {(0.0, seed): seed < SEEDS[0] + failed for seed in SEEDS}
    assert design.counts(found) is counted
    del found[0.0, SEEDS[-1]]
    assert not design.counts(found)
    assert design.missing(found) == [(0.0, SEEDS[-1])]


def test_places_follow_one_another() -> None:
    half = {(0.0, seed): seed < 102 for seed in PILOT_SEEDS} | {(0.0, seed): seed < SEEDS[16] for seed in SEEDS}
    assert {place for place, *_ in design.wanted({})} == {PLACES[0]}
    assert {place for place, *_ in design.wanted({PLACES[0]: half})} == {PLACES[1]}
    assert design.wanted({PLACES[0]: half}, PLACES[:1]) == []
    assert [seed for *_, seed in design.wanted({PLACES[0]: {(0.0, 101): True}})] == [100, 102, 103]


def test_runs_without_results_end_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = iter([0, 3])
    monkeypatch.setattr(run, "run_grid", lambda *_: next(failed))
    with pytest.raises(RuntimeError, match=r"has no results of \(Place\(task='walk'"):
        run.grow(Tables.empty(), RunOptions(tmp_path, 1, stack=32))
    with pytest.raises(RuntimeError, match="3 cells failed"):
        run.grow(Tables.empty(), RunOptions(tmp_path, 1, stack=32))


@pytest.mark.slow  # starts a worker
def test_runs_become_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "STEPS", 22)
    place = PLACES[8]
    cells = [*run.cells([(place, -0.375, 200), (place, -0.375, 205)]), *run.cells([(place, 1.0, 100)])]
    cells += run.cells([(place, 0.0, 40)])
    assert run.ended(tmp_path).runs.empty
    assert not run_grid(cells, RunOptions(tmp_path, 1, stack=32), PlainView(PlainConsole()))
    found = run.ended(tmp_path)
    ended = {(rung, seed): stage for rung, seed, stage in found.runs[["rung", "seed", "stage"]].itertuples(index=False)}
    assert ended == {(-0.375, 200): "main", (-0.375, 205): "main", (1.0, 100): "pilot"}, "seed 40 is not of the study"
    assert set(found.signals["seed"]) == {200, 205}
    assert found.signals.loc[found.signals["seed"] == 200, "update"].tolist() == [5, 10, 15, 20]
    assert found.signals[list(SIGNALS)].notna().all(axis=None)
    loaded = load(tmp_path)
    key = loaded.cells.set_index("seed").loc[205, "key"]
    ratio = next(steps for own, steps in loaded.steps_by_cell() if own == key)["ess_ratio"].to_numpy()
    score = found.signals.set_index(["seed", "update"]).loc[(205, 10), "ess"]
    assert score == pytest.approx(-np.log(ratio[5:10]).mean()), "the ten updates applied so far, and none after"
    assert [name for name in found.runs if name.startswith(alarms.PREFIX)]
    assert found.signals["length_surge"].nunique() > 1
    assert outcomes(found.runs)[place].keys() == ended.keys()
