import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import trained_here

import vcpo_bench as vb
from vcpo_bench.errors import UsageError

SCRIPT = """
import vcpo_bench as vb
tables = vb.run(["tis"], [1], [3], steps=2, prompts=2, responses=2, controls=False, out={out!r}, jobs=1, quiet=True)
print(len(tables.cells), tables.cells["status"].item(), tables.cells["seed"].item(), len(tables.steps))
"""


def test_a_script_without_a_guard_runs_a_grid_and_reads_its_tables(tmp_path: Path) -> None:
    script, out = tmp_path / "study.py", tmp_path / "out"
    script.write_text(SCRIPT.format(out=str(out)))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "1 completed 3 2\n", done.stderr
    again = vb.run("tis", 1, "3,", steps=2, prompts=2, responses=2, controls=False, out=out, quiet=True)
    assert again.cells["key"].tolist() == vb.load(out).cells["key"].tolist()


def test_an_unknown_setting_is_named_with_a_close_one() -> None:
    with pytest.raises(UsageError, match=r"run\(step=...\): no such setting; did you mean steps"):
        vb.run(step=3)


def test_values_are_read_as_the_command_line_reads_them() -> None:
    with pytest.raises(UsageError, match="--staleness '-1'"):
        vb.run("tis", [-1])
    with pytest.raises(UsageError, match="--steps 0"):
        vb.run("tis", 1, steps=0)


def test_one_plug_in_and_parsed_methods_are_taken(tmp_path: Path) -> None:
    small = {"steps": 1, "prompts": 2, "responses": 2, "controls": False, "quiet": True, "jobs": 1, "out": tmp_path}
    plugin = Path(__file__).parents[1] / "helpers" / "mixing_plugin.py"
    with trained_here():
        vb.run("self-norm", 1, 1, plugins=str(plugin), **small)
        tables = vb.run([vb.methods.parse_method("clip(high=0.28)+ess")], 1, 1, plugins=plugin, **small)
        vb.run(vb.methods.parse_method("clip(high=0.28)+ess"), 1, 1, **small)
    assert sorted(tables.cells["method"]) == ["clip(high=0.28)+ess", "self-norm"]
    assert set(tables.cells["status"]) == {"completed"}


def test_the_script_is_the_main_module_again_afterward(tmp_path: Path) -> None:
    before = sys.modules["__main__"]
    with pytest.raises(UsageError):
        vb.run("no-such-method", out=tmp_path)
    assert sys.modules["__main__"] is before


def test_numbers_of_numpy_a_stack_and_a_stop_are_taken(tmp_path: Path) -> None:
    small = {"steps": 2, "prompts": 2, "responses": 2, "controls": False, "quiet": True, "jobs": 1}
    seeds, lr = np.int64(2), np.float64(1e-3)
    with trained_here():
        tables = vb.run("tis", np.int64(1), seeds, lr=lr, stack=2, out=tmp_path / "stack", **small)
        stopped = vb.run("tis", 1, 1, stop="ess(window=1,threshold=2.0)", out=tmp_path / "stop", **small)
    assert tables.cells["status"].tolist() == ["completed"] * 2
    assert stopped.cells["status"].tolist() != ["error"]
