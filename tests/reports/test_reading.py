"""A report opens the table of updates of a cell twice, however many sections it has: opening thousands takes time."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from vcpo_bench.analysis.results import Results, load
from vcpo_bench.records import STEPS_FILE
from vcpo_bench.reports.report import build
from vcpo_bench.reports.study import Study


def test_updates_are_read_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: Counter[Path] = Counter()
    read = Results._read

    def counted(self: Results, path: Path, *others: Any, **named: Any) -> Any:
        reads[path] += 1
        return read(self, path, *others, **named)

    monkeypatch.setattr(Results, "_read", counted)
    build(Study(load(folder)))
    assert max(number for path, number in reads.items() if path.name == STEPS_FILE) <= 2  # for sections, for signals
