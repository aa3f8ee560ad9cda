"""Facts of curves are kept in the results folder, and never believed when anything they rest on has changed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from vcpo_bench import records
from vcpo_bench.analysis.comparison import kept_facts
from vcpo_bench.analysis.comparison.kept_facts import FILE, kept_curve_facts
from vcpo_bench.analysis.comparison.scoreboard import curve_facts, scoreboard
from vcpo_bench.analysis.results import load
from vcpo_bench.files.checksums import CHECKSUM, FILES, read_sealed, write_sealed


def seal(folder: Path) -> None:
    for cell in (folder / records.CELLS).iterdir():
        facts = json.loads((cell / records.CELL_FILE).read_text())
        write_sealed(cell / records.CELL_FILE, {k: v for k, v in facts.items() if k not in (FILES, CHECKSUM)})


@pytest.fixture(scope="module")
def original(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept") / "results"
    shapes = {"mis": "nan", "tis": "collapsed"}
    make_results(folder, methods=("vcpo", "tis", "mis"), lags=(4,), seeds=(0, 1), steps=40, shapes=shapes)
    seal(folder)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "results"))


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Which cells were computed, at each call."""
    calls: list[set[str]] = []

    def note(results: Any) -> pd.DataFrame:
        calls.append(set(results.cells["key"]))
        return curve_facts(results)

    monkeypatch.setattr(kept_facts, "curve_facts", note)
    return calls


def board(folder: Path) -> tuple[pd.DataFrame, int]:
    results = load(folder)
    return scoreboard(results, kept_curve_facts(results)), len(results.problems)


def test_kept_facts_are_the_computed_ones_to_the_last_bit(folder: Path, computed: list[set[str]]) -> None:
    wanted = scoreboard(load(folder))
    for _ in range(2):
        pd.testing.assert_frame_equal(board(folder)[0], wanted, check_exact=True)
    assert len(computed) == 1
    pd.testing.assert_frame_equal(kept_curve_facts(load(folder)), curve_facts(load(folder)), check_exact=True)


def test_only_new_and_replaced_cells_are_computed(folder: Path, computed: list[set[str]]) -> None:
    cells = sorted((folder / records.CELLS).iterdir())
    away = folder.parent / "away"
    cells[0].rename(away)
    board(folder)
    away.rename(cells[0])
    other = json.loads((cells[1] / records.CELL_FILE).read_text())
    write_sealed(cells[1] / records.CELL_FILE, {k: v for k, v in other.items() if k != FILES} | {"seconds": 9.0})
    wanted = scoreboard(load(folder))
    pd.testing.assert_frame_equal(board(folder)[0], wanted, check_exact=True)
    assert computed[1:] == [{cells[0].name, cells[1].name}]
    board(folder)
    assert len(computed) == 2


@pytest.mark.parametrize("table", [records.STEPS_FILE, records.EVALS_FILE])
def test_a_flipped_bit_in_a_table_is_noticed_though_the_facts_are_kept(folder: Path, table: str) -> None:
    whole, problems = board(folder)
    assert problems == 0
    file = next((folder / records.CELLS).glob("*vcpo*")) / table
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    for _ in range(2):
        damaged, problems = board(folder)
        assert problems == 1
        assert damaged["damaged"].sum() == 1
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    pd.testing.assert_frame_equal(board(folder)[0], whole, check_exact=True)


@pytest.mark.parametrize("how", ["bit", "unsealed", "code", "other values", "list"])
def test_a_file_that_cannot_be_believed_is_written_again(folder: Path, how: str, computed: list[set[str]]) -> None:
    wanted, _ = board(folder)
    file = folder / FILE
    good = file.read_bytes()
    values = {key: value for key, value in read_sealed(file).items() if key not in (CHECKSUM, FILES)}
    facts = next(iter(values["cells"].values()))["facts"]
    if how == "bit":
        file.write_bytes(good.replace(b'"final_reward": 0.', b'"final_reward": 1.', 1))
        assert file.read_bytes() != good
    elif how == "unsealed":
        facts["final_reward"] = 0.123
        file.write_text(json.dumps(values))
    else:
        facts["final_reward"] = {"other values": "0.5"}.get(how, facts["final_reward"])
        changed = {"code": "older", "other values": values["code"], "list": values["code"]}[how]
        cells: Any = [1] if how == "list" else values["cells"]
        write_sealed(file, {"code": changed, "cells": cells}, cover=False)
    pd.testing.assert_frame_equal(board(folder)[0], wanted, check_exact=True)
    assert len(computed) == 2
    assert len(computed[1]) == (1 if how == "other values" else len(computed[0]))
    assert file.read_bytes() == good


def test_cells_without_checksums_and_running_ones_are_never_kept(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    folder = make_results(tmp_path, seeds=(0,), steps=40, partial=("tis",))
    results = load(folder, include_partial=True)
    pd.testing.assert_frame_equal(kept_curve_facts(results), curve_facts(results))
    assert not (folder / FILE).exists()


def test_pooled_folders_keep_their_own_and_a_read_only_one_keeps_nothing(
    folder: Path, make_results: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_results(tmp_path / "other", methods=("clip",), seeds=(3,), steps=40)
    seal(other)
    pooled = load([folder, other])
    pd.testing.assert_frame_equal(kept_curve_facts(pooled), curve_facts(pooled))
    held = [set(read_sealed(one / FILE)["cells"]) for one in (folder, other)]
    assert held == [{path.name for path in (one / records.CELLS).iterdir()} for one in (folder, other)]
    assert np.isfinite(kept_curve_facts(pooled)["final_reward"]).all()
    (other / FILE).unlink()

    def fails(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(kept_facts, "write_sealed", fails)
    pd.testing.assert_frame_equal(kept_curve_facts(pooled), curve_facts(pooled))
    assert not (other / FILE).exists()
