"""What the README shows is what there is."""

import re
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from vcpo_bench.cli import app

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_python_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    source = torch.randn(6, 5).neg().exp().neg().requires_grad_()
    names = {
        "logp": source * 1.0,
        "behavior_logp": source.detach() - 0.1,
        "mask": torch.ones(6, 5, dtype=torch.bool),
        "reward": torch.tensor([1.0, 0, 0, 1, 1, 0]),
        "group": torch.tensor([0, 0, 0, 1, 1, 1]),
    }
    exec(code, names)
    assert source.grad is not None
    assert bool((source.grad != 0).any())


def test_the_two_lines_are_there() -> None:
    assert "\n    pip install . && vcpo-bench run --methods vcpo,clip,vespo --staleness 1,16,128\n" in README
    assert "\n    pip install '.[test]' && pytest -n auto\n" in README
    start = README.split("## Quick start")[1].split("\n## ")[0]
    assert len([line for line in start.splitlines() if line.startswith("    ")]) == 2, "nothing else to paste"
    assert "pip install '.[test]' && pytest -n auto\n" in (Path(__file__).parents[2] / ".ci" / "run").read_text()


def commands() -> list[str]:
    block = re.findall(r"```\n(vcpo-bench .*?)```", README, flags=re.S)[0]
    return [line.partition("#")[0].strip().removeprefix("vcpo-bench ") for line in block.splitlines()]


def test_every_line_shown_can_be_pasted() -> None:
    assert not [command for command in commands() if " | " in command]


@pytest.mark.parametrize("command", commands())
def test_every_command_shown_exists_with_its_flags(command: str) -> None:
    words = command.split()
    shown = CliRunner().invoke(app, [words[0], "--help"], terminal_width=200)
    assert shown.exit_code == 0, command
    for flag in (word for word in words if word.startswith("--")):
        assert flag in shown.output, command
