"""`vcpo-bench run`, as its users meet it; what cannot be carried out is one clear line, and nothing is written."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from command_line import RUN, call, call_here, refused, run_with

from vcpo_bench.bench.policies.warm_start import read_warm_start
from vcpo_bench.bench.tasks import token_task


def test_a_run_writes_every_cell_with_its_controls(finished: Path) -> None:
    cells = {path.name: json.loads((path / "cell.json").read_text()) for path in (finished / "cells").iterdir()}
    assert sorted((c["config"]["method"], c["config"]["staleness"], c["control"]) for c in cells.values()) == [
        ("clip", 1, False),
        ("reinforce", 0, True),
        ("reinforce", 1, True),
    ]
    assert {c["status"] for c in cells.values()} == {"completed"}
    assert all(c["steps_done"] == 4 and c["provenance"]["libraries"]["torch"] for c in cells.values())
    assert (finished / "scoreboard.csv").read_text().count("\n") >= 4


def test_running_again_runs_nothing(finished: Path) -> None:
    times = {path: path.stat().st_mtime_ns for path in (finished / "cells").rglob("*.parquet")}
    result = call(*RUN, "--out", str(finished))
    assert result.exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in (finished / "cells").rglob("*.parquet")} == times
    start = read_warm_start(token_task("walk-eos"))
    said = f"start policy of walk-eos: held-out reward {start.reward:.2f} sampled, {start.greedy:.2f} greedy\n"
    assert said in result.output
    assert said not in call(*RUN, "--out", str(finished), "--quiet").output


def test_a_damaged_cell_is_named_set_aside_and_run_again(finished: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "run"))
    cell = next((out / "cells").glob("*clip*"))
    steps = (cell / "evals.parquet").read_bytes()
    (cell / "cell.json").write_text("{")
    result = call_here(*RUN, "--out", str(out))
    assert result.exit_code == 0
    assert f"{cell}/cell.json cannot be read" in result.output.replace("\n", "")
    assert (out / "damaged" / f"{cell.name}-1" / "cell.json").read_text() == "{"
    assert json.loads((cell / "cell.json").read_text())["status"] == "completed"
    assert len((cell / "evals.parquet").read_bytes()) > len(steps) // 2


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    result = call(*RUN, "--out", str(tmp_path / "none"), "--dry-run")
    assert result.exit_code == 0
    (total,) = result.stdout.splitlines()
    assert total.startswith("3 cells, 3 to run on 1 worker: about ")
    assert " s (" in total or " min (" in total or " h " in total
    first, *cells = call(*RUN, "--out", str(tmp_path / "none"), "--dry-run", "--cells").stdout.splitlines()
    assert first.startswith("3 cells")
    assert len(cells) == 3
    assert not (tmp_path / "none").exists()


def test_a_lag_as_long_as_the_run_is_allowed_with_a_warning() -> None:
    result = call("run", "--staleness", "50", "--steps", "5", "--prompts", "2", "--seeds", "1", "--dry-run")
    assert result.exit_code == 0
    assert "every update consumes data of the start policy" in result.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--methods", "vcop"], "vcpo"),
        (["--methods", "clip(high=0.3"], ">>>"),
        (["--methods", ","], "--methods"),
        (["--task", "chian"], "chain"),
        (["--staleness", "-1"], "-1"),
        (["--steps", "0"], "--steps 0"),
        (["--config", "qick"], "quick"),
        (["--jobs", "-2"], "-2"),
        (["--staleness"], "--staleness"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(tmp_path: Path, flags: list[str], said: str) -> None:
    assert said in refused("run", "--out", str(tmp_path / "out"), *flags)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").touch()
    assert "holds other files" in call(*RUN, "--out", str(tmp_path / "thesis")).stderr


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_device_that_is_not_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    said = refused("run", "--device", "cuda", "--out", str(tmp_path / "out"), *more)
    assert said == "error: --device cuda: this machine has 0 CUDA devices; use cpu\n"
    assert not (tmp_path / "out").exists()


def test_a_broken_plugin_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nothing_like_this\n")
    assert "nothing_like_this" in refused("run", "--plugin", str(tmp_path / "broken.py"))


def test_a_failing_cell_is_a_row_the_rest_goes_on_and_the_exit_code_is_1(tmp_path: Path) -> None:
    assert call("new", "method", "bad-one", "--folder", str(tmp_path)).exit_code == 0
    plugin = tmp_path / "bad_one.py"
    text = plugin.read_text()
    plugin.write_text(text[: text.index("        return Terms")] + "        raise RuntimeError('wires crossed')\n")
    line = len(plugin.read_text().splitlines())
    arguments = [*RUN, "--no-controls", "--plugin", str(plugin), "--out", str(tmp_path / "out")]
    arguments[arguments.index("clip")] = "bad-one,clip"
    done = call(*arguments)
    assert done.exit_code == 1, done.output
    cells = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("cells/*/cell.json")]
    assert {(c["config"]["method"], c["status"], c["reason"]) for c in cells} == {
        ("bad-one", "error", f"plug-in .../bad_one.py, line {line}: RuntimeError: wires crossed"),
        ("clip", "completed", ""),
    }
    again = call_here(*arguments)  # a failed cell is tried again
    assert again.exit_code == 1, again.output


@pytest.mark.parametrize("jobs", ["2", pytest.param("1", marks=pytest.mark.slow)])
@pytest.mark.parametrize("quiet", [(), pytest.param(("--quiet",), marks=pytest.mark.slow)])
def test_a_warning_of_workers_is_shown_once_and_recorded_by_every_cell(
    jobs: str, quiet: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert call("new", "method", "loud-one", "--folder", str(tmp_path)).exit_code == 0
    plugin = tmp_path / "loud_one.py"
    says = """        import random, warnings
        warnings.warn(f"this takes {random.randrange(9**9)} s")
"""
    plugin.write_text(plugin.read_text().replace("        return Terms", f"{says}        return Terms"))
    grid = run_with(methods="loud-one", seeds="2", jobs=jobs)
    done = call(*grid, "--no-controls", "--plugin", str(plugin), "--out", str(tmp_path / "out"), *quiet)
    assert done.exit_code == 0, done.output
    assert done.output.count("warning: this takes") == (0 if quiet else 1)
    assert "this takes" not in capfd.readouterr().err
    cells = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("cells/*/cell.json")]
    assert [len(cell["warnings"]) for cell in cells] == [1, 1]
    assert all(re.fullmatch(r"this takes \d+ s", cell["warnings"][0]) for cell in cells)


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
    assert "did you mean trl" in refused("run", "--model", "smollm2", "--trainer", "trll", "--dry-run")
