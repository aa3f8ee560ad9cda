"""The parts of a cell: each of its expressions is read once, and what they name can be shared."""

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.parts import CellParts
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.grammar import read_items
from vcpo_bench.records.settings import CellSettings

PARTS = ("method", "task", "regime", "policy", "optimizer", "learner", "sampler")
CELL = CellConfig(method="clip(high=0.3)+ess", staleness=2, seed=0, regime="minibatch(epochs=2)", optimizer="sgd")


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
