"""What names things or refuses them neither imports torch nor needs it; what needs it says so in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = "import sys; sys.modules['torch'] = None; from vcpo_bench.__main__ import main; main()"
"""The command line where torch is not installed."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT.replace("import sys;", f"import sys; sys.argv[1:] = {list(arguments)!r};")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "kind", ["methods", "parts", "tasks", "regimes", "optimizers", "policies", "samplers", "launchers"]
)
def test_listings_do_without_torch(kind: str) -> None:
    shown = run("ls", kind)
    assert shown.returncode == 0, shown.stderr
    assert len(shown.stdout.splitlines()) > 2


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        *(("--methods", "vcppo"), ("--staleness", "x"), ("--task", "nope"), ("--regime", "nope"), ("--lr", "x")),
        *(("--sampler", "nope"), ("--optimizer", "nope"), ("--policy", "nope"), ("--jobs", "-1"), ("--seeds", "x")),
    ],
)
def test_bad_values_are_refused_without_torch(flag: str, value: str) -> None:
    refused = run("run", flag, value)
    assert refused.returncode == 2
    assert value in refused.stderr
    assert "torch, which" not in refused.stderr


@pytest.mark.parametrize("verb", ["run --quiet", "run --dry-run", "show method clip", "lab warmup --task walk"])
def test_what_needs_torch_says_so_in_one_line(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run(*verb.split())
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: this needs torch")
    assert refused.stderr.count("\n") == 1
