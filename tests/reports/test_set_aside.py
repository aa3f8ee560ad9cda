"""Cells that cannot be read, and cells given up before their first update, are rows of a report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.reports.document import Table
from vcpo_bench.reports.report import build
from vcpo_bench.reports.study import Study


@pytest.mark.parametrize("everyone", [False, True])
def test_every_cell_is_a_row(make_results: Callable[..., Path], tmp_path: Path, everyone: bool) -> None:
    folder = make_results(tmp_path / "given-up", lags=(1, 16), seeds=(0,), steps=20)
    damaged, *rest = sorted((folder / "cells").iterdir())
    file = damaged / "cell.json"
    facts = json.loads(file.read_text())
    file.write_text(json.dumps(facts | {"config": facts["config"] | {"lr": "three"}}))
    for cell in rest if everyone else rest[:1]:
        facts = json.loads((cell / "cell.json").read_text())
        facts |= {"status": "error", "error": "the worker died 3 times", "steps_done": 0, "seconds": None}
        (cell / "cell.json").write_text(json.dumps(facts))
        for table in cell.glob("*.parquet"):
            table.unlink()
    tables = [
        one for section in build(Study(load(folder))).sections for one in section.blocks if isinstance(one, Table)
    ]
    failures = next(one for one in tables if one.name == "incomplete")
    rows = [[entry.text for entry in row] for row in failures.rows]
    assert sum(row[5] == "error" and row[7] == "the worker died 3 times" for row in rows) == (6 if everyone else 1)
    (aside,) = [row for row in rows if row[5] == "damaged"]
    assert aside[0] == damaged.name
    assert "lr = 'three'" in aside[7]
    board = next(one for one in tables if one.name == "scoreboard")
    assert len(board.rows) == 6
    assert sum("1 error" in row[-1].text for row in board.rows) == (6 if everyone else 1)
