"""Cells on a Tinker server: lag, records, failures, and what is refused before anything runs."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import tinker_cells
import torch

from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.learners.catalog import LEARNERS
from vcpo_bench.bench.learners.tinker_api.policy import TinkerPolicy
from vcpo_bench.bench.learners.tinker_learner import base_model
from vcpo_bench.errors import UsageError
from vcpo_bench.records.setting import settings_of
from vcpo_bench.records.settings import CellSettings


@pytest.mark.parametrize("method", ["vcpo(baseline=group)", "clip", "vespo"])
@pytest.mark.parametrize(("regime", "staleness"), [("fifo", 0), ("fifo", 4), ("async(clock=virtual)", 2)])
def test_a_cell_runs_at_its_lag(
    method: str, regime: str, staleness: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, line = tinker_cells.connect(monkeypatch)
    cell = tinker_cells.config(method, staleness, regime=regime, record="diagnostics")
    status, facts = tinker_cells.run(cell, tmp_path)
    assert status == "completed", facts["error"]
    steps = pd.read_parquet(tmp_path / cell.key(1) / "steps.parquet")
    if regime == "fifo":
        lags = pd.read_parquet(tmp_path / cell.key(1) / "lags.parquet")
        assert lags["lag"].tolist() == [min(step, staleness) for step in range(6)]
    assert steps["entropy"].isna().all()
    assert steps["grad_norm"].notna().all()
    assert steps["grad_norm_clipped"].isna().all()
    assert steps["lr"].tolist() == [each["learning_rate"] for each in server.steps]
    assert {each["grad_clip_norm"] for each in server.steps} == {1.0}
    assert server.calls.count("forward") == server.calls.count("optim_step") == 6  # one pass more than backward
    assert line.requests[-1][1] == "/api/v1/unload_model"
    assert "secret" not in json.dumps(facts)


def test_a_step_rule_scales_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    server, _ = tinker_cells.connect(monkeypatch)
    trainer = tinker_cells.trainer("vcpo(baseline=group)", 2, lr_warmup=4)
    for update in range(4):
        done = trainer.learner.update(tinker_cells.random_rewards(trainer.source.next_batch(update).batch), update)
        rate = 1e-2 * min(1.0, (update + 1) / 4)
        assert server.steps[-1]["learning_rate"] == pytest.approx(rate * done.made.scale)
    assert done.made.scale < 1


def test_a_request_that_the_server_refuses_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, _ = tinker_cells.connect(monkeypatch)
    server.broken["create"] = ValueError("Maximum number of\n LoRA adapters reached")
    status, facts = tinker_cells.run(tinker_cells.config(), tmp_path)
    assert status == "error"
    assert "tinker_request_failed: http://server.test:8000, create_lora_training_client: ValueError" in facts["reason"]
    assert "Maximum number of LoRA adapters reached" in facts["reason"]


def test_evidence_that_is_not_finite_is_never_stepped_with(monkeypatch: pytest.MonkeyPatch) -> None:
    server, _ = tinker_cells.connect(monkeypatch)
    trainer = tinker_cells.trainer("clip", 1)
    batch = trainer.source.next_batch(0).batch
    broken = replace(batch, behavior_logp=torch.full_like(batch.behavior_logp, math.nan))
    done = trainer.learner.update(broken, 0)
    assert done.nonfinite
    assert "optim_step" not in server.calls


@pytest.mark.parametrize(
    ("broken", "field"),
    [({"coefficients": torch.full((), math.inf)}, "gradient"), ({"step_scale": torch.tensor(math.nan)}, "step_scale")],
)
def test_an_update_that_is_not_finite_is_never_sent(
    broken: dict[str, torch.Tensor], field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = tinker_cells.connect(monkeypatch)
    trainer = tinker_cells.trainer("clip", 1)
    batch, method = trainer.source.next_batch(0).batch, type(trainer.learner.method)
    call = method.__call__

    def breaking(self: Any, evidence: Any) -> Any:
        update = call(self, evidence)
        return replace(update, **{name: value.expand(getattr(update, name).shape) for name, value in broken.items()})

    monkeypatch.setattr(method, "__call__", breaking)
    done = trainer.learner.update(batch, 0)
    assert done.nonfinite == field
    assert math.isnan(done.made.norm)
    assert "forward_backward" not in server.calls


def test_a_server_whose_gradient_was_infinite_ends_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weights are ruined, and no state before them can be named from here."""
    tinker_cells.connect(monkeypatch)
    trainer = tinker_cells.trainer("clip", 1)
    batch = trainer.source.next_batch(0).batch
    monkeypatch.setattr(TinkerPolicy, "step", lambda *_: math.inf)
    with pytest.raises(RuntimeError, match="the server's gradient was not finite"):
        trainer.learner.update(batch, 0)


TASK = "arithmetic(terms=2,largest=9)"
SPEC = GridSpec(("clip",), (2,), (0,), (TASK,), settings=CellSettings(learner="tinker"), controls=False)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> str:
    """A language model that is planned with, and never opened."""
    monkeypatch.setattr("vcpo_bench.bench.cells.grid_spec.model_identity", lambda source: f"{source}@0")
    monkeypatch.setattr("vcpo_bench.bench.cells.grid_spec.model_folder", lambda source: None)
    return "qwen3"


def planned(model: str, **changes: Any) -> list[str]:
    settings = {name: changes.pop(name) for name in list(changes) if name in settings_of(CellSettings)}
    spec = replace(SPEC, model=model, settings=CellSettings(**({"learner": "tinker"} | settings)), **changes)
    return [cell.config.sampler for cell in plan_grid(spec)]


def test_the_server_samples_and_the_record_says_so(model: str) -> None:
    assert planned(model) == ["tinker"]
    assert planned(model, sampler="tinker") == ["tinker"]
    assert planned(model, learner="torch") == ["torch"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"methods": ("vcpo",)}, r"needs score norms \(OPOB\), .* vcpo\(baseline=group\)"),
        ({"methods": ("clip+otb",)}, "needs the whole distribution"),
        ({"methods": ("clip+kl(anchor=reference)",)}, "needs a reference policy"),
        ({"methods": ("clip+entropy",)}, "an entropy bonus has no counterpart"),
        ({"methods": ("clip+gac",)}, "changes the gradient"),
        ({"methods": ("clip+dc-asgd",)}, "needs the weights, which are on the server"),
        ({"regimes": ("inflight",)}, "cannot stop within a response"),
        ({"regimes": ("fifo(publish_every=2)",)}, "older ones cannot be sampled"),
        ({"regimes": ("fifo(engine_noise=bf16)",)}, "cannot be rounded; give a standard deviation"),
        ({"regimes": ("async",)}, "there is no sampler process; use clock=virtual"),
        ({"optimizer": "muon"}, "--optimizer muon --learner tinker: the server has AdamW"),
        ({"optimizer": "adamw(reset=5)"}, "AdamW without resets"),
        ({"lora": 8}, r"--lora --learner tinker: give the rank as tinker\(rank=N\)"),
        ({"dtype": "bfloat16"}, "--dtype --learner tinker: the server decides it"),
        ({"micro_tokens": 64}, "--micro-tokens --learner tinker: the server cuts"),
        ({"checkpointing": True}, "--checkpointing --learner tinker"),
        ({"shards": 2}, "--shards --learner tinker"),
        ({"record": "full"}, "score norms cannot be recorded there; use --record diagnostics"),
        ({"sampler": "generate"}, "--sampler generate: the server of --learner tinker samples; drop --sampler"),
        ({"sampler": "tinker", "learner": "torch"}, "--sampler tinker: comes with --learner tinker"),
    ],
)
def test_what_a_server_cannot_do_is_refused_when_cells_are_planned(
    changes: dict[str, Any], said: str, model: str
) -> None:
    with pytest.raises(UsageError, match=said):
        planned(model, **changes)


def test_all_stands_for_the_methods_that_a_server_can_train(model: str) -> None:
    cells = plan_grid(replace(SPEC, model=model, methods=("all",)))
    methods = {cell.config.method for cell in cells}
    assert {"clip", "vespo", "reinforce"} <= methods
    assert "vcpo" not in methods


@pytest.mark.parametrize(
    ("offered", "found"),
    [(["a/qwen3", "a/llama"], "a/qwen3"), (["/models/qwen3/", "b"], "/models/qwen3/"), (["other"], "other")],
)
def test_the_base_model_is_the_one_of_that_name_or_the_only_one(offered: list[str], found: str) -> None:
    assert base_model(offered, "qwen3", "u") == found


@pytest.mark.parametrize("offered", [[], ["a", "b"], ["a/qwen3", "b/qwen3"]])
def test_a_model_that_the_server_does_not_train_is_refused(offered: list[str]) -> None:
    with pytest.raises(UsageError, match=r"--url u: trains .*, not qwen3"):
        base_model(offered, "qwen3", "u")


def test_a_missing_package_and_a_missing_address_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    tinker = LEARNERS.parse("tinker")
    tinker_cells.connect(monkeypatch)
    tinker.check_installed()
    monkeypatch.setenv("VCPO_BENCH_TINKER_URL", "somewhere")
    with pytest.raises(UsageError, match="no address of a server"):
        tinker.check_installed()
    monkeypatch.delenv("VCPO_BENCH_TINKER_URL")
    with pytest.raises(UsageError, match="give the server's address with --url, or in VCPO_BENCH_TINKER_URL"):
        tinker.check_installed()
    monkeypatch.setattr("vcpo_bench.bench.learners.tinker_api.service.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install '\.\[tinker\]' in a checkout"):
        tinker.check_installed()
