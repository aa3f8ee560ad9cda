"""Cell keys: stable, readable, and moved by exactly what changes the numbers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcpo_bench.bench.cells.config import CellConfig, short_number
from vcpo_bench.errors import UsageError
from vcpo_bench.records import RULES_VERSION

GOLDEN = Path(__file__).parents[2] / "golden" / "cell_keys.json"


def test_keys_are_those_of_the_golden_file() -> None:
    """A key that moves without a new rules version would silently orphan everyone's results."""
    golden = json.loads(GOLDEN.read_text())
    assert golden["rules_version"] == RULES_VERSION, "new rules: regenerate the golden keys in the same commit"
    for case in golden["cells"]:
        assert CellConfig(**case["config"]).key(case["method_version"]) == case["key"]


@pytest.mark.parametrize(
    "change",
    [
        {"method": "clip"},
        {"staleness": 1},
        {"seed": 1},
        {"task": "chain"},
        {"lr": 1e-4},
        {"steps": 301},
        {"prompts": 8},
        {"responses": 4},
        {"eval_every": 5},
        {"record": "full"},
        {"regime": "minibatch"},
        {"series": "ab"},
        {"start": "cd"},
        {"parent": "ef"},
        {"fork_step": 5},
    ],
)
def test_every_field_moves_the_key(change: dict) -> None:
    config = CellConfig(method="vcpo", staleness=16, seed=0)
    assert replace(config, **change).key(1) != config.key(1)


def test_method_version_moves_the_key_and_defaults_spelled_out_do_not() -> None:
    config = CellConfig(method="vcpo", staleness=16, seed=0)
    assert config.key(1) != config.key(2)
    assert CellConfig(method="vcpo", staleness=16, seed=0, steps=300, task="walk").key(1) == config.key(1)


def test_key_is_a_tame_folder_name() -> None:
    key = CellConfig(method="vcpo(ess=linear)+opob/../x", staleness=128, seed=3).key(1)
    assert "/" not in key
    assert "(" not in key
    assert key.startswith("walk-vcpo_ess_linear")


@pytest.mark.parametrize("bad", [{"staleness": -1}, {"lr": float("nan")}, {"lr": 0.0}, {"steps": 0}, {"color": 1}])
def test_impossible_cells_are_refused(bad: dict) -> None:
    with pytest.raises((UsageError, TypeError)):
        CellConfig(**({"method": "clip", "staleness": 1, "seed": 0} | bad))


@given(st.floats(min_value=1e-12, max_value=1e6))
def test_short_number_reads_back_exactly(value: float) -> None:
    assert float(short_number(value)) == value


@pytest.mark.parametrize(("value", "text"), [(3e-4, "3e-4"), (0.001, "1e-3"), (1.0, "1"), (2.5e-5, "2.5e-5")])
def test_short_number_is_short(value: float, text: str) -> None:
    assert short_number(value) == text
