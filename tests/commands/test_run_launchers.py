"""`--launcher`, `--launcher-config`, `--detach` and `run-cell`: what cannot be is one line."""

import importlib.util
from pathlib import Path

import pytest
from command_line import call
from fake_scheduler import cells_of

from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.schedulers.catalog import LAUNCHERS
from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
from vcpo_bench.bench.running.schedulers.scheduled import ScheduledLauncher
from vcpo_bench.commands.support.launching import check_stacking, read_launcher
from vcpo_bench.errors import UsageError

SMALL = ("--methods", "clip", "--staleness", "1", "--seeds", "1", "--steps", "2", "--task", "walk-eos")


def refused(*arguments: object) -> str:
    done = call("run", *SMALL, *map(str, arguments))
    assert done.exit_code == 2
    return done.stderr


def test_the_file_and_the_expression_say_the_same_and_the_expression_wins(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("partition: gpu\nminutes: 240\nmemory: 8.5\noptions: reservation=night\n")
    found = read_launcher("slurm(minutes=30)", file)
    assert found.text() == "slurm(memory=8.5,minutes=30,options=reservation=night,partition=gpu)"


def test_a_typed_default_wins_too(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("minutes: 120\n")
    default = read_launcher("slurm", None).minutes
    assert read_launcher(f"slurm(minutes={default})", file).minutes == default


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("partition:", "partition has no value; give one, or leave the line out"),
        ("partitoin: gpu", "unknown key 'partitoin'; slurm takes: partition, account"),
        ("minutes: soon", "minutes: 'soon' is not a whole number, 1 or more"),
        ("- gpu", "must contain lines such as 'partition: gpu'"),
        ("{", "invalid YAML"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "cluster.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"--launcher-config .*cluster\.yaml: ") as problem:
        read_launcher("slurm", tmp_path / "cluster.yaml")
    assert said in str(problem.value)


def test_a_missing_file_and_an_unknown_launcher(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_launcher("slurm", tmp_path / "none.yaml")
    assert "unknown launcher 'slrum'; did you mean slurm" in refused("--launcher", "slrum", "--out", tmp_path / "r")


@pytest.mark.parametrize(("launcher", "package"), [("slurm", "submitit"), ("ray", "ray")])
def test_a_missing_extra_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: str, package: str
) -> None:
    real = importlib.util.find_spec
    module = LAUNCHERS.parse(launcher).__module__
    monkeypatch.setattr(f"{module}.find_spec", lambda name: None if name == package else real(name))
    said = refused("--launcher", launcher, "--out", tmp_path / "r")
    assert f"pip install '.[{launcher}]' in a checkout" in said
    assert not (tmp_path / "r").exists()


def test_the_scheduler_chooses_the_gpu() -> None:
    with pytest.raises(UsageError, match="chooses the GPU of each cell; use cuda"):
        read_launcher("ray", None).check("cuda:1")


def test_a_stack_is_for_this_machine_only() -> None:
    ray, local = read_launcher("ray", None), read_launcher("local", None)
    with pytest.raises(UsageError, match="--stack 8: --launcher ray gives each cell a job of its own; drop --stack"):
        check_stacking("8", ray)
    for asked in ("auto", "off"):
        check_stacking(asked, ray)
    check_stacking("8", local)


def test_a_job_script_runs_one_cell(tmp_path: Path) -> None:
    out = tmp_path / "r"
    (cell,) = cells_of(out, 1)
    LaunchFile(out).add_cells(RunOptions(out, 0).cell_jobs([(cell,)]))
    assert "holds no such cell" in call("run-cell", "--out", str(out), "--key", "other").stderr
    assert call("run-cell", "--out", str(out), "--key", cell.key).exit_code == 0
    assert (out / "cells" / cell.key / "cell.json").exists()
    assert "run-cell" not in call("--help").stdout


def test_the_launcher_is_checked_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(launcher: object, device: str) -> None:
        raise UsageError(f"as told on {device}")

    monkeypatch.setattr(ScheduledLauncher, "check", check)
    assert "as told on cpu" in refused("--launcher", "slurm", "--out", tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_nothing_is_left_running_on_this_machine(tmp_path: Path) -> None:
    assert "--launcher local end with this command; start it with nohup" in refused("--detach", "--out", tmp_path / "r")
    assert not (tmp_path / "r").exists()
