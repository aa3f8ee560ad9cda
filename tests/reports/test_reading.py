"""A page opens each table of a cell once, and shows every file of `sections/` in the order that it declares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from vcpo_bench.analysis.commands import prediction
from vcpo_bench.analysis.prediction import signal_values
from vcpo_bench.analysis.results import Results, load
from vcpo_bench.records import EVALS_FILE, LAGS_FILE, STEPS_FILE
from vcpo_bench.reports import sections
from vcpo_bench.reports.report import build, find_sections
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


SHIPPED = [
    *("in-short", "scoreboard", "ranking", "learning-curves", "ess", "survival", "prediction", "failures", "threats"),
    *("episodes", "reward-lag", "ess-curves", "gradients", "stability", "ablation", "divergence", "realized-lag"),
    *("lm-eval", "time", "probe", "turns", "protocol"),
]


def test_the_sections_that_ship_stand_in_this_order() -> None:
    anchors = [one.anchor for one in find_sections()]
    assert [anchor for anchor in anchors if anchor in SHIPPED] == SHIPPED
    assert len(set(anchors)) == len(anchors)
    assert all(one.title for one in find_sections())
    assert sum(not one.folded for one in find_sections()) == 9, "what a reader sees without opening anything"


def test_a_file_dropped_into_the_folder_is_a_section_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cell_count.py").write_text(
        "from vcpo_bench.reports.report_section import ReportSection\n"
        "SECTIONS = [ReportSection('cell-count', 'Number of cells', 15, lambda study, ledger: [])]\n"
    )
    (tmp_path / "shared_by_sections.py").write_text("")
    monkeypatch.setattr(sections, "__path__", [*sections.__path__, str(tmp_path)])
    found = {one.anchor: one for one in find_sections()}
    assert list(found)[:4] == ["in-short", "cell-count", "scoreboard", "ranking"]
    assert found["cell-count"].title == "Number of cells"
    assert "shared-by-sections" not in found
