"""Cell keys: stable, readable, and moved by exactly what changes the numbers; names and numbers at their limits."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcpo_bench.bench.cells.cell_store import numbered
from vcpo_bench.bench.cells.config import CellConfig, plugins_of, short_number
from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.model_source import fingerprint
from vcpo_bench.bench.cells.provenance import provenance
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.plugins import load_plugin
from vcpo_bench.records import RULES_VERSION

GOLDEN = Path(__file__).parents[2] / "golden" / "cell_keys.json"


def test_keys_are_those_of_the_golden_file() -> None:
    """A key that moves without a new rules version would silently orphan everyone's results."""
    golden = json.loads(GOLDEN.read_text())
    assert golden["rules_version"] == RULES_VERSION, "new rules: regenerate the golden keys in the same commit"
    for case in golden["cells"]:
        assert CellConfig(**case["config"]).key(case["method_version"]) == case["key"]


def test_method_version_moves_the_key_and_defaults_spelled_out_do_not() -> None:
    config = CellConfig(method="vcpo", staleness=16, seed=0)
    assert config.key(1) != config.key(2)
    assert CellConfig(method="vcpo", staleness=16, seed=0, steps=300, task="walk").key(1) == config.key(1)


def test_key_is_a_tame_folder_name() -> None:
    key = CellConfig(method="vcpo(ess=linear)+opob/../x", staleness=128, seed=3).key(1)
    assert "/" not in key
    assert "(" not in key
    assert key.startswith("walk-vcpo_ess_linear")


@given(st.floats(min_value=1e-12, max_value=1e6))
def test_short_number_reads_back_exactly(value: float) -> None:
    assert float(short_number(value)) == value


@pytest.mark.parametrize(("value", "text"), [(3e-4, "3e-4"), (0.001, "1e-3"), (1.0, "1"), (2.5e-5, "2.5e-5")])
def test_short_number_is_short(value: float, text: str) -> None:
    assert short_number(value) == text


def test_checkpoints_are_folders_with_a_number(tmp_path: Path) -> None:
    for name in ("checkpoint-7", "checkpoint-07x", "checkpoint-", "checkpoint-1234567890123"):
        (tmp_path / name).mkdir()
    (tmp_path / "checkpoint-9").write_text("a file")
    assert numbered(tmp_path, "checkpoint-") == {7: tmp_path / "checkpoint-7"}


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a system that binds processes to cores")
def test_the_recorded_cores_are_those_that_this_process_may_use() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert provenance.__wrapped__()["cores"] == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_what_cell_json_could_not_say_again_is_refused_before_it_is_trained(tmp_path: Path) -> None:
    """A trace of lags is written out in the name of its regime."""
    lags = tmp_path / "lags.txt"
    lags.write_text("\n".join(["1"] * 240))
    regime = f"random(law=trace,trace={lags})"
    with pytest.raises(
        UsageError,
        match=r"--regime random.*\.\.\.: must be a printable text of at most 500 characters",
    ):
        plan_grid(GridSpec(("clip",), (3,), (0,), ("walk",), regimes=(regime,), controls=False))
    lags.write_text("\n".join(["1"] * 200))
    assert plan_grid(GridSpec(("clip",), (3,), (0,), ("walk",), regimes=(regime,), controls=False))
    with pytest.raises(UsageError, match=r"--seeds 9223372036854775808: must be a whole number below 2\^63"):
        plan_grid(GridSpec(("clip",), (3,), (2**63,), ("walk",), controls=False))


@pytest.mark.parametrize(
    ("name", "counts"), [("model.safetensors", True), ("config.json", True), ("README.md", False), ("notes.txt", False)]
)
def test_weights_and_settings_decide_the_fingerprint_and_notes_do_not(tmp_path: Path, name: str, counts: bool) -> None:
    found = []
    for content in ("old", "new"):
        folder = tmp_path / content
        folder.mkdir()
        for each in ("model.safetensors", "config.json", "README.md", "notes.txt"):
            (folder / each).write_text(content if each == name else "same")
        found.append(fingerprint(folder))
    assert (found[0] != found[1]) == counts


OWN = '''
from dataclasses import dataclass

from vcpo_bench.bench.policies.embedded.tiny import Tiny

@dataclass(frozen=True, kw_only=True)
class Own(Tiny):
    """One's own."""

    name = "own"
    summary = "one's own"
'''


def test_a_plug_in_is_part_of_the_cell_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    load_plugin(file)
    cell = CellConfig(method="clip", staleness=1, seed=0)
    assert plugins_of(cell) == ""
    assert len(plugins_of(replace(cell, policy="own"))) == 10, "ten digits of its digest"
