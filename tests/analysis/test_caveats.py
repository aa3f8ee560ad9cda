"""Damaged files and notes as findings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vcpo_bench import records
from vcpo_bench.analysis.caveats import DAMAGE, caveats
from vcpo_bench.analysis.comparability import ComparisonNote
from vcpo_bench.analysis.findings import NOTE
from vcpo_bench.analysis.results import load


def test_damage_names_its_cell_or_all_of_them(make_results: Callable[..., Path], tmp_path: Path) -> None:
    folder = make_results(tmp_path / "run", seeds=(0,), steps=20)
    victim = min((folder / records.CELLS).iterdir())
    (victim / records.STEPS_FILE).unlink()
    (folder / records.GRID_FILE).write_text("nonsense")
    results = load(folder)
    assert len(results.steps)
    grid, steps = caveats(results, lambda path: path.name).about(DAMAGE)
    assert grid.text.startswith("Damaged file: run/grid.json is damaged, so which cells are controls is unknown;")
    assert set(grid.keys) == set(results.cells["key"])
    assert steps.text.startswith(f"Damaged file: run/cells/{victim.name}/steps.parquet is missing;")
    assert steps.keys == (victim.name,)


def test_notes_rest_on_the_cells_they_are_about(make_results: Callable[..., Path], tmp_path: Path) -> None:
    for steps in (20, 30):
        make_results(tmp_path, methods=("tis",), seeds=(0,), steps=steps, controls=False, partial=("tis",))
    results = load(tmp_path, include_partial=True)
    found = caveats(results)
    lengths, running = found.about(NOTE)
    assert "Cells differ in steps (20, 30)" in lengths.text
    assert sorted(found.tables["cells"].loc[list(lengths.rows), "steps"].unique()) == [20, 30]
    assert "4 of 4 cells are still running" in running.text
    assert running.columns == ("key", "status", "partial")


def test_a_selection_has_only_the_notes_about_its_cells(make_results: Callable[..., Path], tmp_path: Path) -> None:
    make_results(tmp_path, methods=("tis", "vcpo"), lags=(1,), seeds=(0,), steps=20, controls=False)
    results = load(tmp_path)
    first, second = results.cells["key"]
    results.notes.append(ComparisonNote("Something about one cell.", ("status",), (first,)))
    assert len(caveats(results).statements) == 1
    assert caveats(results.select([second])).statements == []
