"""The scripts for clusters are shell, their commands are ours, and the page on scaling names each of them."""

import subprocess
from pathlib import Path

import pytest

from vcpo_bench.commands.support.launching import read_launcher

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples" / "scale").glob("*.sh"))
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")


def test_there_are_scripts_for_slurm_and_for_ray() -> None:
    assert {path.name for path in SCRIPTS} >= {"slurm_grid.sh", "ray_grid.sh", "same_bits.sh"}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_shell_and_the_page_names_it(path: Path) -> None:
    done = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in text
    assert f"(../examples/scale/{path.name})" in PAGE
    assert f"{path.name} " in text, "says how to call it"


def test_the_cluster_file_is_taken() -> None:
    assert read_launcher("slurm", ROOT / "examples" / "scale" / "cluster.yaml").text().startswith("slurm(")
