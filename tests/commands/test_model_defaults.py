"""Flags that are not given suit a pretrained model; what is given, on the command line or in a file, stays."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import click_command

from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.model_source import ORIGIN_FILE
from vcpo_bench.commands.support.model_defaults import with_model_defaults
from vcpo_bench.commands.support.run_options import GridOptions
from vcpo_bench.records.settings import CellSettings, read_settings


def read(*arguments: str) -> tuple[GridOptions, CellSettings, dict[str, Any]]:
    """The options of a command line as `run` gets them, and what `--save-config` would write."""
    context = click_command("run").make_context("run", list(arguments))
    grid = GridOptions(model=context.params["model"], task=context.params["task"], lr=context.params["lr"])
    found = with_model_defaults(context, grid, read_settings(context.params))
    return *found, context.params


def test_a_pretrained_model_gets_settings_of_its_own() -> None:
    grid, settings, parameters = read("--model", "smollm2")
    assert (grid.task, float(grid.lr)) == ("quiz(largest=5,shots=1)", 1e-5)
    assert (settings.steps, settings.eval_prompts, settings.micro_tokens) == (60, 64, 8192)
    assert (parameters["task"], parameters["steps"], parameters["lr"]) == (grid.task, 60, grid.lr)
    assert float(read("--model", "smollm2", "--lora", "8")[0].lr) == 1e-4


def test_what_is_given_stays(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("steps: 300\ntask: gsm8k(data=sample)\n")
    grid, settings, _ = read("--config", str(tmp_path / "c.yaml"), "--model", "smollm2", "--lr", "3e-4")
    assert (grid.task, grid.lr, settings.steps) == ("gsm8k(data=sample)", "3e-4", 300)


def test_the_built_in_policy_keeps_its_defaults() -> None:
    assert read()[:2] == (GridOptions(), CellSettings())


@pytest.mark.parametrize(("made_from", "lr"), [("llama(1M)", 3e-4), ("smollm2", 1e-5)])
def test_a_warmed_up_model_trains_on_its_task(tmp_path: Path, made_from: str, lr: float) -> None:
    (tmp_path / ORIGIN_FILE).write_text(json.dumps({"task": "running-sums", "from": made_from}))
    grid, settings, _ = read("--model", str(tmp_path))
    assert (grid.task, float(grid.lr)) == ("running-sums", lr)
    assert (settings.steps == CellSettings.steps) == (made_from != "smollm2")


@pytest.mark.parametrize(("lr", "lora", "warned"), [(1e-4, 0, True), (9e-5, 0, False), (1e-4, 8, False)])
def test_a_rate_that_breaks_a_pretrained_model_is_warned_of(lr: float, lora: int, warned: bool) -> None:
    spec = GridSpec(("clip",), (0,), (0,), lrs=(lr,), settings=CellSettings(lora=lora), model="smollm2")
    assert any("pretrained model" in line for line in spec.warnings()) == warned
