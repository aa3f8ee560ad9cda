"""Settings that look alike, and cells that cannot be read or were given up, are rows of a report."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

import vcpo_bench.reports
from vcpo_bench.analysis.results import load
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.records import SYNCHRONOUS
from vcpo_bench.reports.document import Table
from vcpo_bench.reports.plots.sheet import figure_name
from vcpo_bench.reports.report import build
from vcpo_bench.reports.sections.scoreboard import task_name
from vcpo_bench.reports.study import ComparisonSetting, Study
from vcpo_bench.reports.terminal.scoreboard import scoreboard_table


@pytest.fixture(scope="module")
def study(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Two learning rates that agree in three digits."""
    folder = tmp_path_factory.mktemp("close")
    places = {"methods": ("vcpo", "clip"), "lags": (1, 16), "seeds": (0, 1), "lrs": (1.2341e-4, 1.2342e-4)}
    return Study(load(make_results(folder, steps=60, **places)))


def test_rates_equal_to_three_digits_have_numbers_of_their_own(study: Study) -> None:
    document = build(study)
    board = next(one for section in document.sections for one in section.blocks if isinstance(one, Table))
    assert {row[1].text for row in board.rows} == {"1.2341e-4", "1.2342e-4"}
    places = [(row[0].text, row[1].text, row[2].text, row[3].text) for row in board.rows]
    assert len(set(places)) == len(places)


def test_rates_equal_to_three_digits_have_headings_of_their_own(study: Study) -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print(scoreboard_table(study.board))
    assert isinstance(console.file, io.StringIO)
    headings = [line for line in console.file.getvalue().splitlines() if line.startswith("chain, ")]
    assert headings == ["chain, fifo, lr 1.2341e-4", "chain, fifo, lr 1.2342e-4"]


def test_only_the_usual_regime_is_left_out_of_names() -> None:
    assert GridSpec(("clip",), (0,), (0,)).regimes == (SYNCHRONOUS,)
    assert CellConfig.regime == SYNCHRONOUS
    assert task_name(ComparisonSetting("chain", SYNCHRONOUS, 3e-4, 1)) == "chain"
    assert task_name(ComparisonSetting("chain", "random(uniform)", 3e-4, 1)) == "chain (random(uniform))"
    assert figure_name("reward", "chain", SYNCHRONOUS) == "reward-chain"
    assert figure_name("reward", "chain", "nested") == "reward-chain-nested"


def test_no_figure_or_table_compares_a_regime_with_its_name() -> None:
    sources = list(Path(vcpo_bench.reports.__path__[0]).rglob("*.py"))
    assert len(sources) > 40
    assert not [path.name for path in sources if f'"{SYNCHRONOUS}"' in path.read_text()]


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
