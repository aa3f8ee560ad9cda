"""The scripts for clusters on a real Slurm of one node: the numbers are those of the same command without it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from launched_grids import digest, wait_for
from patience import within
from slurm_cluster import SlurmCluster

pytest.importorskip("submitit", reason="runs in .ci/integrations slurm")
SCRIPTS = Path(__file__).parents[2] / "examples" / "scale"
GRID = """\
methods: [vcpo, clip]
staleness: [2]
seeds: 1
task: walk-eos
controls: false
prompts: 4
responses: 4
steps: 20
"""
CELL = """\
methods: [vcpo]
staleness: [2]
seeds: 1
task: arithmetic(terms=2,largest=9)
model: {model}
controls: false
prompts: 3
responses: 4
steps: 3
"""
CLUSTER = """\
minutes: 30
memory: 0.5
poll: 1
cpus: 2
"""


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a node has: the command on its path, and no GPU."""
    program = tmp_path / "bin" / "vcpo-bench"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m vcpo_bench "$@"\n')
    program.chmod(0o755)
    folders = [str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    monkeypatch.setenv("DEVICE", "cpu")


def run(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=within(400))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def config(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "grid.yaml"
    path.write_text(text)
    return path


def sbatch(log: Path, *more: str | Path) -> None:
    """Submit a script with what this node has instead of what it asks for, and wait."""
    fits = ("--nodes=1", "--gpus-per-node=0", "--cpus-per-task=2", "--mem=1500", "--time=30", f"--output={log}")
    done = subprocess.run(["sbatch", "--wait", *fits, *map(str, more)], capture_output=True, timeout=within(400))
    assert done.returncode == 0, log.read_text() if log.exists() else done.stderr


def test_a_grid_from_a_login_node(cluster: SlurmCluster, node: None, tmp_path: Path) -> None:
    grid, own = config(tmp_path, GRID), tmp_path / "own"
    own.mkdir()
    (own / "slurm_grid.sh").write_bytes((SCRIPTS / "slurm_grid.sh").read_bytes())
    (own / "cluster.yaml").write_text(CLUSTER)
    assert "2 cells submitted" in run("bash", own / "slurm_grid.sh", grid, tmp_path / "slurm")
    # from Slurm 22.05 on a step may not take them from its job
    scripts = [path.read_text() for path in (tmp_path / "slurm" / ".launch").rglob("*_submission.sh")]
    assert scripts
    assert all("--cpus-per-task=2 " in text.partition("\nsrun ")[2] for text in scripts)
    wait_for("the jobs have ended", lambda: not cluster.jobs())
    run("vcpo-bench", "run", "--config", grid, "--out", tmp_path / "here")
    assert digest(tmp_path / "slurm") == digest(tmp_path / "here") != {}


def test_a_grid_on_ray_inside_an_allocation(cluster: SlurmCluster, node: None, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="runs in .ci/integrations slurm")
    grid = config(tmp_path, GRID)
    sbatch(tmp_path / "log", SCRIPTS / "ray_grid.sh", grid, tmp_path / "ray")
    run("vcpo-bench", "run", "--config", grid, "--out", tmp_path / "here")
    assert digest(tmp_path / "ray") == digest(tmp_path / "here") != {}
