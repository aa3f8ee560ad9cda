"""What ends a cell that is not finite is said: the field of three updates, or the part of a plug-in that made it."""

import json
from pathlib import Path
from typing import Any

import pytest

from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.running.cell.run_cell import run_cell
from vcpo_bench.methods import load_plugin
from vcpo_bench.records.settings import CellSettings

pytestmark = pytest.mark.usefixtures("few_questions")

PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar
import torch
from vcpo_bench.methods import EvidenceView, RatioMethod, Step, Terms

@dataclass(frozen=True, kw_only=True)
class Own(RatioMethod):
    name: ClassVar[str] = "own"

    def terms(self, ev):
        return Terms(weight=torch.full_like(ev.ratio(), {value}))

@dataclass(frozen=True, kw_only=True)
class OwnStep(Step):
    name: ClassVar[str] = "own-step"

    def scale(self, ev):
        return torch.tensor({value})
"""


def ended(tmp_path: Path, method: str, value: str) -> dict[str, Any]:
    (file := tmp_path / "own.py").write_text(PLUGIN.format(value=value))
    load_plugin(file)
    settings = CellSettings(steps=6, prompts=2, responses=4)
    (planned,) = plan_grid(GridSpec((method,), (1,), (0,), ("walk-eos",), settings=settings, controls=False))
    run_cell(planned, ResultsFolder(tmp_path / "out").cells, 0, lambda *event: None)
    (folder,) = (tmp_path / "out" / "cells").glob(f"{planned.key}*")
    facts: dict[str, Any] = json.loads((folder / "cell.json").read_text())
    return facts


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("own", "MethodError: own: weight is not a number (NaN), of evidence that is finite"),
        ("clip+own-step", "MethodError: own-step: scale is nan; return a finite number, 0 or more"),
    ],
)
def test_a_part_that_returns_nan_of_finite_evidence_is_an_error(tmp_path: Path, method: str, said: str) -> None:
    facts = ended(tmp_path, method, "torch.nan")
    assert facts["status"] == "error"
    assert facts["reason"].endswith(said)


def test_what_was_not_finite_in_three_updates_is_named(tmp_path: Path) -> None:
    facts = ended(tmp_path, "own", "torch.inf")
    assert (facts["status"], facts["steps_done"]) == ("nan", 3)
    assert facts["reason"] == "three updates in a row were skipped: gradient not finite"
