"""`vcpo-bench run --trainer`: the script that a dry run prints."""

import json
import re
import shlex
import subprocess
from pathlib import Path

from command_line import call

MODEL = {"config.json": "{}", "model.safetensors": ""}


def test_a_dry_run_prints_a_script_that_makes_the_files_of_every_cell(tmp_path: Path) -> None:
    model = tmp_path / "tiny"
    model.mkdir()
    for name, text in MODEL.items():
        (model / name).write_text(text)
    grid = ["--methods", "vcpo,clip", "--staleness", "0,4", "--seeds", "1", "--no-controls", "--task", "arithmetic"]
    run = ["run", "--model", str(model), *grid, "--trainer", "trl(processes=2)", "--out", str(tmp_path / "out")]
    shown = call(*run, "--device", "cuda", "--launcher", "slurm(gpus=2)", "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("# 4 cells, 4 to run\n")
    commands = re.findall("^python .*", shown.stdout, re.MULTILINE)
    assert len(commands) == 4
    script = re.sub("^python ", "echo ", shown.stdout, flags=re.MULTILINE)
    made = tmp_path / "made"
    made.mkdir()
    subprocess.run(["sh", "-e", "-c", script], cwd=made, check=True, capture_output=True)
    jobs = [json.loads(path.read_text()) for path in sorted(made.glob("*/job.json"))]
    assert {(job["config"]["method"], job["config"]["staleness"]) for job in jobs} == {
        (method, lag) for method in ("vcpo", "clip") for lag in (0, 4)
    }
    for job in jobs:
        assert job["model"] == str(model)
        assert job["updates"] == job["config"]["steps"] == 60
        assert any(shlex.split(command)[-1] == f"{job['key']}/job.json" for command in commands)
    assert not (tmp_path / "out").exists(), "a dry run writes nothing"


def test_a_trainer_that_there_is_not_is_one_line() -> None:
    result = call("run", "--model", "smollm2", "--trainer", "trll", "--dry-run")
    assert result.exit_code == 2
    assert "did you mean trl" in result.stderr
