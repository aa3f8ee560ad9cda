"""What the README shows is what there is."""

import re
from pathlib import Path
from typing import Any

import torch
from typer.testing import CliRunner

from vcpo_bench.cli import app
from vcpo_bench.methods import parse_method

README = (Path(__file__).parents[2] / "README.md").read_text()
LOOP, OWN = re.findall(r"```python\n(.*?)```", README, flags=re.S)


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


def test_the_loop_runs_as_it_stands() -> None:
    found = run_snippet(LOOP)
    logp = log_probabilities(found["model"], found["tokens"])
    weight = found["model"][1].weight
    (expected,) = torch.autograd.grad(logp, weight, -found["batch"].to_rows(found["update"].coefficients))
    assert bool((weight.grad != 0).any())
    torch.testing.assert_close(weight.grad, expected)


def test_it_runs_for_every_method_that_it_names() -> None:
    ((first, line),) = re.findall(r'^method = parse_method\("(.*)"\)  # or (.*)$', LOOP, flags=re.M)
    others = re.findall(r'"([^"]+)"', line)
    assert others
    for expression in others:
        found = run_snippet(LOOP.replace(f'"{first}"', f'"{expression}"'))
        assert found["method"].canonical == expression
        assert bool((found["model"][1].weight.grad != 0).any()), expression


def test_a_method_of_your_own_is_what_new_writes(tmp_path: Path) -> None:
    """Under another name, since who contributes may have a `my-method`."""
    made = CliRunner().invoke(app, ["new", "method", "our-method", "--folder", str(tmp_path)])
    assert made.exit_code == 0, made.output
    written = re.sub(r"  # .*", "", (tmp_path / "our_method.py").read_text())
    for ours, theirs in (("our-", "my-"), ("our_", "my_"), ("Our", "My"), ("OUR", "MY")):
        written = written.replace(ours, theirs)
    assert OWN in written
    assert written.removesuffix(OWN).splitlines()[-2:] == ["", ""], "nothing but imports above, nothing below"


def test_methods_named_in_the_table_exist() -> None:
    rows = README.split("## The methods")[1].split("\n## ")[0]
    for named in re.findall(r"`([^`]+)`", rows):
        parse_method(f"clip{named}" if named.startswith("+") else named)


def test_it_is_read_in_minutes() -> None:
    assert len(README.split()) <= 900


def test_the_two_lines_are_there() -> None:
    assert "\n    pip install . && vcpo-bench run --methods vcpo,clip,vespo --staleness 1,16,128\n" in README
    assert "\n    pip install '.[test]' && pytest -n auto\n" in README
    start = README.split("## Quick start")[1].split("\n## ")[0]
    assert len([line for line in start.splitlines() if line.startswith("    ")]) == 2, "nothing else to paste"
    ci = (Path(__file__).parents[2] / ".ci" / "run").read_text()
    assert "\npip install '.[test]'\n" in ci
    assert "\npytest -n auto" in ci
