"""What names things or refuses them neither imports torch nor needs it; what needs it says so in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MAIN = "from vcpo_bench.__main__ import main; main()"
MISSING = ("torch", "safetensors", "transformers")
"""What an installation without torch lacks."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    without = f"import sys; sys.argv[1:] = {list(arguments)}; sys.modules |= dict.fromkeys({MISSING})"
    command = [sys.executable, "-c", f"{without}; {MAIN}"]
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
    assert "this needs torch" not in refused.stderr


@pytest.mark.parametrize("verb", ["run", "run --quiet", "run --dry-run", "show method clip", "lab warmup --task walk"])
def test_what_needs_torch_says_so_in_one_line(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run(*verb.split())
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: this needs torch")
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize("trainer", ["trl", "verl", "prime-rl", "slime"])
def test_what_to_set_in_a_trainer_is_said_without_torch(trainer: str) -> None:
    said = run("advise", "--lag", "16", "--trainer", trainer)
    assert said.returncode == 0, said.stderr
    assert "vespo" in said.stdout.partition(f"In {trainer}:")[2]


def test_a_wrong_trainer_is_refused_without_torch() -> None:
    refused = run("advise", "--lag", "16", "--trainer", "vrl")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "did you mean verl" in refused.stderr
