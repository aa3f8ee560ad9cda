"""`vcpo-bench run --export`: a folder that another machine fills, and whose cells come back."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call
from patience import within

from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.running.export import export_grid
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.errors import UsageError

GRID = ["--methods", "clip", "--staleness", "0,2", "--seeds", "1", "--no-controls", "--steps", "3"]
SIZE = ["--prompts", "2", "--eval-prompts", "4"]


def exported(out: Path) -> None:
    result = call("run", *GRID, *SIZE, "--export", str(out))
    assert result.exit_code == 0, result.output
    assert f"2 cells written to {out}" in result.stdout


def run(script: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    variables = {**os.environ, "PATH": path, **environment}
    command = ["sh", str(script), *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=within(120.0), check=False)


def test_a_folder_travels_is_filled_and_comes_back(tmp_path: Path) -> None:
    exported(tmp_path / "laptop")
    there = (tmp_path / "laptop").rename(tmp_path / "cluster")
    keys = (there / "cells.txt").read_text().splitlines()
    assert len(keys) == 2
    assert not any((there / "cells").glob("*"))
    assert "sbatch --array=1-2 --nodes=1 run.sh\n" in (there / "run.sh").read_text(), "on a CPU no GPU is asked for"
    first = run(there / "run.sh", "1")
    assert first.returncode == 0, first.stderr
    copy = tmp_path / "spool.sh"
    copy.write_text((there / "run.sh").read_text())
    second = run(copy, SLURM_ARRAY_TASK_ID="2", SLURM_SUBMIT_DIR=str(there))
    assert second.returncode == 0, second.stderr
    merged = call("results", "merge", str(there), "--out", str(tmp_path / "home"))
    assert merged.exit_code == 0, merged.output
    for key in keys:
        assert json.loads((tmp_path / "home" / "cells" / key / "cell.json").read_text())["status"] == "completed"


@pytest.mark.parametrize("flags", [("--dry-run",), ("--detach",), ("--report-to", "tensorboard")])
def test_what_an_export_does_not_do_is_refused(tmp_path: Path, flags: tuple[str, ...]) -> None:
    out = tmp_path / "out"
    assert f"runs nothing; drop {flags[0]}" in call("run", *GRID, "--export", str(out), *flags).stderr
    assert not out.exists()


def test_what_cannot_travel_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(UsageError, match="plug-in files stay where they are"):
        export_grid([], RunOptions(out, 0, plugins=(tmp_path / "plugin.py",)), print)
    lent = plan_grid(GridSpec(("clip+lr-matched(to=vcpo)",), (4,), (0,), controls=False))
    with pytest.raises(UsageError, match="a method that borrows step scales waits for another cell"):
        export_grid(lent, RunOptions(out, 0), print)
    assert not out.exists()


@pytest.mark.parametrize("line", ["3", "0"])
def test_a_line_that_there_is_not_runs_nothing(tmp_path: Path, line: str) -> None:
    exported(tmp_path / "out")
    assert run(tmp_path / "out" / "run.sh", line).returncode == 2
