"""A page opens each table of a cell once, however many sections it has: opening thousands takes time."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from vcpo_bench.analysis.commands import prediction
from vcpo_bench.analysis.prediction import signal_values
from vcpo_bench.analysis.results import Results, load
from vcpo_bench.records import EVALS_FILE, LAGS_FILE, STEPS_FILE
from vcpo_bench.reports.report import build
from vcpo_bench.reports.sections.cell_pages import cell_pages
from vcpo_bench.reports.study import Study


def test_each_table_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: Counter[Path] = Counter()
    signals: list[int] = []
    read, blocks = Results._open, signal_values._blocks

    def counted(self: Results, path: Path, *others: Any, **named: Any) -> Any:
        reads[path] += 1
        return read(self, path, *others, **named)

    def noted(runs: Iterable[tuple[int, slice]]) -> Any:
        known = list(runs)
        signals.append(len(known))
        found = list(blocks(known))
        assert sum(len(block.places) for block in found) == sum(place >= 0 for place, _ in known)
        return found

    monkeypatch.setattr(Results, "_open", counted)
    monkeypatch.setattr(signal_values, "_blocks", noted)
    monkeypatch.setattr(prediction, "LEAST_RUNS", 1)  # the study is small, and signals are asked for all the same
    study = Study(load(folder))
    build(study)  # drawing reads nothing again, see the fixture `page`
    cell_pages(study)
    assert signals == [len(study.steps)]
    tables = {
        name: [number for path, number in reads.items() if path.name == name]
        for name in (STEPS_FILE, EVALS_FILE, LAGS_FILE)
    }
    assert {name: max(found) for name, found in tables.items()} == dict.fromkeys(tables, 1)
    assert all(len(found) == len(study.cells) for found in tables.values())
