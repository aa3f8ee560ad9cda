"""Folders of several machines become one; contradictions are named, and nothing is written then."""

import shutil
from pathlib import Path

import pytest
from command_line import call
from fake_scheduler import cells_of, end_cell

from vcpo_bench.bench.cells.check import check_folder
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.merge import Merged, merge
from vcpo_bench.bench.cells.results_folder import ResultsFolder, status_of
from vcpo_bench.bench.training.step_recorder import StepRecorder
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files.checksums import read_sealed, write_sealed


def machine(path: Path, cells: list[PlannedCell], status: str = "completed") -> Path:
    folder = ResultsFolder(path)
    with folder.locked(wait=False):
        folder.update_grid({cell.key: {"control": False} for cell in cells})
    for cell in cells:
        end_cell(folder.cells, cell, status)
    return path


def other_numbers(folder: Path) -> None:
    facts = read_sealed(folder / "cell.json")
    recorder = StepRecorder("basic")
    recorder.tables["steps.parquet"].append({"step": 0, "sampled_reward": 0.5})
    recorder.write(folder)
    write_sealed(folder / "cell.json", facts)


def test_cells_tables_and_the_list_are_joined_again_and_again(tmp_path: Path) -> None:
    cells = cells_of(tmp_path / "plan", 3)
    one, two = machine(tmp_path / "one", cells[:2]), machine(tmp_path / "two", cells[1:])
    (one / "probes").mkdir()
    (one / "probes" / "a.parquet").write_bytes(b"table")
    (two / "cells" / "b.partial").mkdir()
    (two / "origins" / "parent-at-2").mkdir(parents=True)
    write_sealed(two / "origins" / "parent-at-2" / "state.json", {})
    for copied in (3, 0):
        assert merge([one, two], tmp_path / "all") == Merged(copied, 4 - copied, 1)
    assert {path.name for path in (tmp_path / "all" / "cells").iterdir()} == {cell.key for cell in cells}
    assert set(read_sealed(tmp_path / "all" / "grid.json")["cells"]) == {cell.key for cell in cells}
    assert (tmp_path / "all" / "probes" / "a.parquet").read_bytes() == b"table"
    assert (tmp_path / "all" / "origins" / "parent-at-2" / "state.json").exists()
    assert not [one.damage for one in check_folder(tmp_path / "all") if one.kind == "cell" and one.damage]


def test_a_contradiction_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    (cell,) = cells_of(tmp_path / "plan", 1)
    one, two = machine(tmp_path / "one", [cell]), machine(tmp_path / "two", [cell])
    other_numbers(two / "cells" / cell.key)
    with pytest.raises(UsageError, match=r"1 with the same name and other numbers") as problem:
        merge([one, two], tmp_path / "all")
    assert all(name in str(problem.value) for name in (cell.key, str(one), str(two)))
    assert not (tmp_path / "all").exists()
    done = call("results", "merge", str(one), str(two), "--out", str(tmp_path / "all"))
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "1 cell copied" in call("results", "merge", str(one), "--out", str(tmp_path / "all")).stdout


def test_tables_that_contradict_are_named(tmp_path: Path) -> None:
    cells = cells_of(tmp_path / "plan", 2)
    folders = [machine(tmp_path / str(number), [cell]) for number, cell in enumerate(cells)]
    for number, folder in enumerate(folders):
        (folder / "scores").mkdir()
        (folder / "scores" / "a.parquet").write_text(str(number))
    with pytest.raises(UsageError, match=r"scores/a.parquet"):
        merge(folders, tmp_path / "all")


def test_kept_checkpoints_are_copied_whichever_folder_has_them(tmp_path: Path) -> None:
    (cell,) = cells_of(tmp_path / "plan", 1)
    bare, rich = machine(tmp_path / "bare", [cell]), machine(tmp_path / "rich", [cell])
    (rich / "cells" / cell.key / "checkpoints" / "2").mkdir(parents=True)
    (rich / "cells" / cell.key / "checkpoints" / "2" / "state.json").write_text("{}")
    there = Path("cells", cell.key, "checkpoints", "2", "state.json")
    merge([bare, rich], tmp_path / "together")
    merge([bare], tmp_path / "later")
    assert merge([rich], tmp_path / "later").copied == 1
    assert (tmp_path / "together" / there).exists()
    assert (tmp_path / "later" / there).exists()


def test_a_cell_that_ended_elsewhere_is_not_unfinished(tmp_path: Path) -> None:
    (cell,) = cells_of(tmp_path / "plan", 1)
    one, two = machine(tmp_path / "one", [cell]), machine(tmp_path / "two", [])
    (two / "cells").mkdir(exist_ok=True)
    (two / "cells" / f"{cell.key}.partial").mkdir()
    assert merge([one, two], tmp_path / "all").unfinished == 0


def test_cells_of_other_rules_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    cells = cells_of(tmp_path / "plan", 2)
    folders = [machine(tmp_path / str(number), [cell]) for number, cell in enumerate(cells)]
    for folder, cell, version in zip(folders, cells, ("1.0", "2.0"), strict=True):
        facts = read_sealed(folder / "cells" / cell.key / "cell.json")
        write_sealed(folder / "cells" / cell.key / "cell.json", facts | {"rules_version": version})
    with pytest.raises(UsageError, match=r"rules versions 1\.0 .* and 2\.0 .*, which cannot be compared"):
        merge(folders, tmp_path / "all")
    assert not (tmp_path / "all").exists()


@pytest.mark.parametrize("content", [{}, {"cells": []}, {"cells": {"a": {}}}])
def test_a_list_without_cells_is_named(tmp_path: Path, content: dict[str, object]) -> None:
    (cell,) = cells_of(tmp_path / "plan", 1)
    one = machine(tmp_path / "one", [cell])
    write_sealed(one / "grid.json", content, cover=False)
    with pytest.raises(DamagedResultError, match=r"grid\.json does not list its cells"):
        merge([one], tmp_path / "all")


@pytest.mark.parametrize("failed", [0, 1])
def test_a_failed_cell_gives_way(tmp_path: Path, failed: int) -> None:
    (cell,) = cells_of(tmp_path / "plan", 1)
    states = ["error" if number == failed else "completed" for number in range(2)]
    folders = [machine(tmp_path / str(number), [cell], status) for number, status in enumerate(states)]
    for folder in folders:  # one after the other, into a folder that has the cell already
        merge([folder], tmp_path / "all")
    assert status_of(tmp_path / "all" / "cells" / cell.key) == "completed"


def test_damage_is_not_copied(tmp_path: Path) -> None:
    (cell,) = cells_of(tmp_path / "plan", 1)
    one = machine(tmp_path / "one", [cell])
    steps = one / "cells" / cell.key / "steps.parquet"
    content = bytearray(steps.read_bytes())
    content[10] ^= 1
    steps.write_bytes(bytes(content))
    with pytest.raises(DamagedResultError, match=f"^{steps} does not match its checksum"):
        merge([one], tmp_path / "all")
    shutil.rmtree(one / "cells")
    with pytest.raises(UsageError, match="is not a results folder"):
        merge([one], tmp_path / "all")
