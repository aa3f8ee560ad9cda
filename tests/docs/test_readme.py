"""What the README shows is what there is."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from vcpo_bench.cli import app

README = (Path(__file__).parents[2] / "README.md").read_text()


(SNIPPET,) = re.findall(r"```python\n(.*?)```", README, flags=re.S)


def log_probabilities(model: torch.nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    scores: torch.Tensor = model(tokens).log_softmax(-1)
    return scores.gather(2, tokens[..., None])[..., 0]


def run_snippet(code: str) -> dict[str, Any]:
    """The names after the snippet ran as a part of somebody's training loop."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(11, 8), torch.nn.Linear(8, 11))
    names: dict[str, Any] = {
        "model": model,
        "tokens": torch.randint(0, 11, (6, 5)),
        "log_probabilities": log_probabilities,
        "behavior_logp": torch.full((6, 5), -2.4),
        "mask": torch.ones(6, 5, dtype=torch.bool),
        "reward": torch.tensor([1.0, 0, 0, 1, 1, 0]),
        "group": torch.tensor([0, 0, 0, 1, 1, 1]),
    }
    exec(code, names)
    return names


def test_the_python_example_runs_as_it_stands() -> None:
    found = run_snippet(SNIPPET)
    assert found["method"].canonical == "vcpo"
    weight = found["model"][1].weight
    assert bool((weight.grad != 0).any())
    for row in range(6):  # the gradient that the coefficients stand for, and the norms of its parts, one by one
        logp = log_probabilities(found["model"], found["tokens"][row : row + 1]).sum()
        parts = torch.autograd.grad(logp, list(found["model"].parameters()))
        torch.testing.assert_close(found["score_norm_sq"][row], sum(part.square().sum() for part in parts))
    logp = log_probabilities(found["model"], found["tokens"])
    (expected,) = torch.autograd.grad(logp, weight, -found["batch"].to_rows(found["update"].coefficients))
    torch.testing.assert_close(weight.grad, expected)


def test_it_runs_for_every_method_that_it_names() -> None:
    (line,) = re.findall(r"^method = .*# or (.*)$", SNIPPET, flags=re.M)
    others = re.findall(r'"([^"]+)"', line)
    assert len(others) == 4
    for expression in others:
        found = run_snippet(SNIPPET.replace('parse_method("vcpo")', f"parse_method({expression!r})"))
        assert bool((found["model"][1].weight.grad != 0).any()), expression


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
