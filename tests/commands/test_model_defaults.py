"""Flags that are not given suit a pretrained model; what is given, on the command line or in a file, stays."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import click_command

from vcpo_bench.bench import devices
from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.model_source import ORIGIN_FILE
from vcpo_bench.bench.machine.model_shapes import KNOWN
from vcpo_bench.bench.running.pool import memory
from vcpo_bench.bench.running.schedulers.catalog import LAUNCHERS
from vcpo_bench.commands.support import run_steps
from vcpo_bench.commands.support.model_defaults import with_fitting_passes, with_model_defaults
from vcpo_bench.commands.support.run_options import ExecutionOptions, GridOptions
from vcpo_bench.records.settings import CellSettings, read_settings


def read(*arguments: str) -> tuple[GridOptions, CellSettings, dict[str, Any]]:
    """The options of a command line as `run` gets them, and what `--save-config` would write."""
    context = click_command("run").make_context("run", list(arguments))
    grid = GridOptions(**{name: context.params[name] for name in ("model", "task", "lr", "device")})
    found = with_model_defaults(context, grid, read_settings(context.params))
    return *found, context.params


def test_a_pretrained_model_gets_settings_of_its_own() -> None:
    grid, settings, parameters = read("--model", "smollm2")
    assert (grid.task, float(grid.lr), grid.seeds) == ("quiz(largest=5,shots=1)", 1e-5, "3")
    assert (settings.steps, settings.eval_prompts, settings.micro_tokens) == (60, 64, 8192)
    assert (parameters["task"], parameters["steps"], parameters["lr"]) == (grid.task, 60, grid.lr)
    assert float(read("--model", "smollm2", "--lora", "8")[0].lr) == 1e-4


@pytest.mark.parametrize(
    ("flags", "sampler"),
    [
        ((), "graph"),
        (("--sampler", "generate"), "generate"),
        (("--lora", "8"), "torch"),
        (("--trainer", "trl"), "torch"),
    ],
)
def test_a_gpu_samples_with_graphs(flags: tuple[str, ...], sampler: str) -> None:
    settings, parameters = read("--model", "smollm2", "--device", "cuda", *flags)[1:]
    assert settings.sampler == parameters["sampler"] == sampler


def test_what_is_given_stays(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("steps: 300\ntask: gsm8k(data=sample)\n")
    grid, settings, _ = read("--config", str(tmp_path / "c.yaml"), "--model", "smollm2", "--lr", "3e-4")
    assert (grid.task, grid.lr, settings.steps) == ("gsm8k(data=sample)", "3e-4", 300)


def test_the_built_in_policy_keeps_its_defaults() -> None:
    assert read()[:2] == (GridOptions(), CellSettings(steps=200, prompts=8, eval_prompts=128))


@pytest.mark.parametrize(("made_from", "lr"), [("llama(1M)", 3e-4), ("smollm2", 1e-5)])
def test_a_warmed_up_model_trains_on_its_task(tmp_path: Path, made_from: str, lr: float) -> None:
    (tmp_path / ORIGIN_FILE).write_text(json.dumps({"task": "running-sums", "from": made_from}))
    grid, settings, _ = read("--model", str(tmp_path))
    assert (grid.task, float(grid.lr)) == ("running-sums", lr)
    assert settings.steps == (60 if made_from == "smollm2" else 200)


@pytest.mark.parametrize(("lr", "lora", "warned"), [(1e-4, 0, True), (9e-5, 0, False), (1e-4, 8, False)])
def test_a_rate_that_breaks_a_pretrained_model_is_warned_of(lr: float, lora: int, warned: bool) -> None:
    spec = GridSpec(("clip",), (0,), (0,), lrs=(lr,), settings=CellSettings(lora=lora), model="smollm2")
    assert any("pretrained model" in line for line in spec.warnings()) == warned


def smollm2(folder: Path) -> Path:
    """A folder that looks like a pretrained model of the size of SmolLM2, without its weights."""
    shape = KNOWN["smollm2"]
    sizes = {"num_hidden_layers": shape.layers, "hidden_size": shape.hidden, "intermediate_size": shape.intermediate}
    heads = {"num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads, "vocab_size": shape.vocab}
    folder.mkdir()
    config = {"model_type": "llama", "tie_word_embeddings": shape.tied} | sizes | heads
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def planned(model: Path, out: Path, *arguments: str, here: bool = True) -> list[PlannedCell]:
    """The two cells of a run with a model."""
    typed = ["--model", str(model), "--methods", "tis,clip", "--seeds", "1", "--no-controls", *arguments]
    context = click_command("run").make_context("run", typed)
    axes = {"task": context.params["task"], "device": context.params["device"]}
    grid = GridOptions("tis,clip", "1", "1", **axes, model=str(model), controls=False)
    grid, settings = with_model_defaults(context, grid, read_settings(context.params))
    spec = with_fitting_passes(context, grid.spec(settings), ExecutionOptions(out=out, jobs=2), here)
    assert context.params["micro_tokens"] == spec.settings.micro_tokens, "what --save-config writes"
    return plan_grid(spec)


def free(gib: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_gib", lambda: gib)


@pytest.mark.parametrize(
    ("dtype", "instructions", "place", "warned"),
    [
        ("bfloat16", False, "local", True),
        ("bfloat16", True, "local", False),
        ("float32", False, "local", False),
        ("bfloat16", False, "slurm", False),
    ],
)
def test_bfloat16_is_warned_of_where_this_machine_is_slow_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: Any, instructions: bool, place: str, warned: bool
) -> None:
    monkeypatch.setattr(devices, "multiplies_bfloat16", lambda device: instructions)
    heard: list[str] = []
    monkeypatch.setattr(run_steps, "say_aside", heard.append)
    model, settings = str(smollm2(tmp_path / "model")), CellSettings(dtype=dtype)
    spec = GridSpec(("clip",), (1,), (0,), ("running-sums",), settings=settings, model=model)
    means = run_steps.Means((), LAUNCHERS.parse(place), [], 0)
    run_steps.plan(spec, ExecutionOptions(out=tmp_path / "out", jobs=1), means)
    assert any("--dtype bfloat16: " in line for line in heard) == warned


@pytest.mark.parametrize(("gib", "tokens"), [(1, 1024), (14, 2048), (200, 32768)])
def test_passes_fit_the_free_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gib: float, tokens: int) -> None:
    """At most the power of two that takes all 64 rows of 256 and 66 tokens."""
    free(gib, monkeypatch)
    cells = planned(smollm2(tmp_path / "model"), tmp_path, "--task", "running-sums", "--dtype", "bfloat16")
    assert {cell.config.micro_tokens for cell in cells} == {tokens}


@pytest.mark.parametrize(("mib", "tokens"), [("15000\n30000", 4096), ("1\n1", 1024), ("[N/A]", 8192)])
def test_passes_fit_the_fullest_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mib: str, tokens: int) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '{mib}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    model = smollm2(tmp_path / "model")
    assert planned(model, tmp_path, "--task", "running-sums", "--device", "cuda")[0].config.micro_tokens == tokens


def test_passes_that_are_given_stay_and_another_machine_gets_a_fixed_size(tmp_path: Path) -> None:
    model = smollm2(tmp_path / "model")
    assert planned(model, tmp_path, "--micro-tokens", "3000")[0].config.micro_tokens == 3000
    assert planned(model, tmp_path, here=False)[0].config.micro_tokens == 8192


def test_a_grid_that_has_begun_keeps_its_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = smollm2(tmp_path / "model")
    free(14, monkeypatch)
    began = planned(model, tmp_path)
    (tmp_path / "cells" / f"{began[1].key}.partial").mkdir(parents=True)
    free(200, monkeypatch)
    assert planned(model, tmp_path) == began
    (other, _) = planned(model, tmp_path, "--dtype", "bfloat16")
    assert other.config.micro_tokens > began[0].config.micro_tokens
