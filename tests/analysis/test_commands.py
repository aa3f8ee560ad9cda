"""The catalog of analyses: one file each, plug-in files too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vcpo_bench.analysis.commands import ANALYSES, run
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.plugins import load_plugin

MINE = '''
from dataclasses import dataclass

from vcpo_bench.analysis.commands import Analysis
from vcpo_bench.analysis.findings import Findings, own_key
from vcpo_bench.analysis.results import Results
from vcpo_bench.naming.parameters import integer


@dataclass(frozen=True, kw_only=True)
class Longest(Analysis):
    """Runs with at least so many updates."""

    name = "longest"
    summary = "Which runs are longest"

    updates: int = integer(10, minimum=1)

    def run(self, results: Results) -> Findings:
        found = Findings({"runs": results.cells[["key", "steps_done"]]}, {"runs": own_key})
        rows = found.tables["runs"][found.tables["runs"]["steps_done"] >= self.updates]
        found.statements.append(found.finding("length", f"{len(rows)} long runs.", "runs", rows, ("steps_done",)))
        return found
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "longest.py"
    path.write_text(MINE)
    yield path
    ANALYSES.forget()


def test_every_file_of_the_folder_is_an_analysis_with_a_summary() -> None:
    assert {"collapse", "compare", "gradients", "prediction", "weights"} <= set(ANALYSES.names())
    assert all(ANALYSES.get(name).summary for name in ANALYSES.names())


def test_a_plug_in_file_adds_one(plugin: Path, make_results: Callable[..., Path], tmp_path: Path) -> None:
    folder = make_results(tmp_path / "run", seeds=(0,), steps=20, controls=False)
    load_plugin(plugin)
    assert [one.text for one in run("longest", folder).statements] == ["4 long runs."]
    with pytest.raises(ValueError, match="cannot rest on"):
        run("longest(updates=30)", folder)


def test_unknown_names_and_parameters_point_at_the_character(make_results: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown analysis 'compere'; did you mean compare"):
        run("compere", tmp_path)
    with pytest.raises(UsageError, match="replications=3 is not legal"):
        run("compare(replications=3)", tmp_path)
