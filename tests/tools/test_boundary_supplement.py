"""The general analysis of the boundary study sees its main runs, of places that count, and nobody before the end."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from boundary_study import supplement, wording
from boundary_study.design import PILOT_SEEDS, PLACES, SEEDS, Place
from boundary_study.tables import FOLDER, RUN, Tables
from boundary_study.tried import tried_table
from boundary_world import null_models, planted
from run_archives.unpack import unpack_folder

from vcpo_bench.errors import UsageError

PLACE = Place("walk", "tis", 16, 3e-4)
STEPS = 100


@pytest.fixture
def results(make_results: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One place: half of its seeds collapse; the runs of another rate and another method are not of it."""
    monkeypatch.setattr("boundary_study.tables.PLACES", (PLACE,))
    for module in ("tables", "areas"):
        monkeypatch.setattr(f"boundary_study.{module}.STEPS", STEPS)

    def shape(method: str, lag: int, seed: int) -> str:
        return "collapsed" if seed % 2 else "healthy"

    return make_results(
        tmp_path / "results",
        ("tis", "vcpo"),
        lags=(16,),
        seeds=(*PILOT_SEEDS, *SEEDS),
        steps=STEPS,
        tasks=("walk",),
        lrs=(3e-4, 6e-4),
        shapes=shape,
        controls=False,
        record="diagnostics",
    )


def test_nobody_looks_before_enough_places_count(results: Path) -> None:
    with pytest.raises(UsageError, match="1 places count: too few"):
        supplement.main_runs(results)


def test_nobody_looks_without_saying_that_the_study_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for given, said in (((), "required: --end"), (("--end",), "is not a results folder")):
        monkeypatch.setattr("sys.argv", ["supplement.py", str(tmp_path), *given])
        with pytest.raises(SystemExit) as ended:
            supplement.main()
        assert ended.value.code == 2
        assert said in capsys.readouterr().err.splitlines()[-1]


def test_the_main_runs_of_places_that_count_are_analyzed(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supplement, "enough", lambda found: len(found) == 1)
    cells = supplement.main_runs(results).cells
    assert sorted(cells["seed"]) == list(SEEDS)
    assert set(cells["method"]) == {"tis"}
    assert set(cells["lr"]) == {3e-4}
    supplement.write(results, tmp_path / "tables")
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {
        *(f"{name}.csv" for name in supplement.TABLES),
        supplement.SENTENCES,
    }
    assert "32 runs were started" in (tmp_path / "tables" / supplement.SENTENCES).read_text()
    within = pd.read_csv(tmp_path / "tables" / "nulls.csv")
    assert set(within["null"]) == {"permuted within configuration"}, "one configuration alone has no other null"


def test_what_a_null_model_leaves_is_said() -> None:
    nulls = null_models()
    said = "it has 0.50 [0.40, 0.60] (95% of 200 draws), one-sided p = 0.02. So ESS says something"
    assert said in wording.null_sentence(nulls)
    assert "one-sided p = 0.30. So it is not shown that" in wording.null_sentence(nulls.assign(p=0.3))
    assert wording.null_sentence(nulls.iloc[:0]) == "Too few runs have a landmark 20 updates ahead."


def test_every_place_that_was_begun_is_shown() -> None:
    runs = planted(PLACES[:2]).runs
    second = runs["method"] == PLACES[1].method
    runs = runs[~second | (runs["seed"] < SEEDS[5])]
    found = tried_table(runs).set_index("method")
    assert found.loc["reinforce", ["pilot_rates", "main", "failed", "counts"]].tolist() == [1, 32, 16, "yes"]
    assert found.loc["tis", ["main", "failed", "counts"]].tolist() == [5, 5, "no"]
    assert found["lr"].tolist() == [PLACES[0].guess, PLACES[1].guess]


@pytest.mark.slow  # unpacks every run
def test_the_shipped_updates_make_the_shipped_tables(tmp_path: Path) -> None:
    unpack_folder(FOLDER / "updates", tmp_path)
    made, shipped = Tables.of(tmp_path), Tables.read(FOLDER)
    pd.testing.assert_frame_equal(made.runs, shipped.runs, check_dtype=False, rtol=1e-5)
    signals = made.signals.sort_values([*RUN, "update"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(signals, shipped.signals, check_dtype=False, rtol=1e-4, atol=2e-5)
    assert len(supplement.main_runs(tmp_path).cells) == 32 * len(pd.read_csv(FOLDER / "places.csv"))
