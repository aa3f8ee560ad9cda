"""The parts of a cell: its expressions are read in one place, each once, and what they name can be shared."""

import ast
import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

import vcpo_bench
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.parts import CellParts
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.grammar import read_items
from vcpo_bench.records.settings import CellSettings

ROOT = Path(vcpo_bench.__file__).resolve().parent
PARTS = ("method", "task", "regime", "policy", "optimizer", "sampler")
READERS = {"parse", "class_of", "parse_method", "token_task", "text_task"}
CELL = CellConfig(method="clip(high=0.3)+ess", staleness=2, seed=0, regime="minibatch(epochs=2)", optimizer="sgd")


def readings(source: str) -> list[str]:
    """Calls that read an expression out of a configuration: `REGIMES.parse(config.regime)`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            given = [one for one in node.args if isinstance(one, ast.Attribute) and one.attr in PARTS]
            if name in READERS and given:
                found.append(ast.unparse(node))
    return found


def test_readings_are_found() -> None:
    source = "a = REGIMES.parse(cell.config.regime)\nb = parse_method(config.method)\nc = parse_method(text)"
    assert readings(source) == ["REGIMES.parse(cell.config.regime)", "parse_method(config.method)"]


def test_expressions_of_a_cell_are_read_in_one_place() -> None:
    rooms = [ROOT / name for name in ("bench", "commands", "api", "reports", "adapters")]
    files = [path for room in rooms for path in room.rglob("*.py") if path.name != "parts.py"]
    found = {str(path.relative_to(ROOT)): readings(path.read_text("utf-8")) for path in files}
    assert {name: calls for name, calls in found.items() if calls} == {}
    assert len(readings((ROOT / "bench" / "cells" / "parts.py").read_text("utf-8"))) >= 3


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_what_its_expression_names_and_read_once(name: str) -> None:
    part = getattr(CELL.parts, name)
    assert part.name == read_items(getattr(CELL, name))[0].name.text
    assert getattr(CELL.parts, name) is part
    with pytest.raises(FrozenInstanceError):  # so that cells and runs may share it
        part.name = "other"


def test_a_copy_with_other_expressions_has_other_parts() -> None:
    assert CELL.parts.regime.text() == "minibatch(epochs=2)"
    assert replace(CELL, regime="fifo").parts.regime.text() == "fifo"


def test_parts_do_not_travel_and_change_no_comparison() -> None:
    plain = CellConfig(**CELL.values())
    assert CELL.parts.method.canonical == CELL.method
    sent = pickle.loads(pickle.dumps(CELL))
    assert "parts" not in vars(sent)
    assert CELL == plain == sent
    assert hash(CELL) == hash(plain)
    assert isinstance(sent.parts, CellParts)


def test_a_task_of_the_other_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="is a text task and needs a language model"):
        _ = CellConfig(method="clip", staleness=0, seed=0, task="arithmetic").parts.task
    with pytest.raises(UsageError, match="has its own tokens: drop --model"):
        _ = CellConfig(method="clip", staleness=0, seed=0, task="chain", model="m@0").parts.task


def test_a_grid_reads_its_shared_expressions_once() -> None:
    spec = GridSpec(("clip",), (1,), (0,), settings=CellSettings(optimizer="sgd(momentum=0.5)"))
    assert spec.parts.optimizer is spec.parts.optimizer
    assert spec.shared()["optimizer"] == spec.parts.optimizer.text() == "sgd(momentum=0.5)"
