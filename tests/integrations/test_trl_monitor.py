"""The monitor in the log of the real TRL: what it reads, when it speaks, and when it stops a run."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("trl", reason="runs in .ci/integrations trl")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from transformers import TrainerCallback
from trl import GRPOTrainer
from trl_runs import trainer

from vcpo_bench.adapters.trl import MonitorCallback
from vcpo_bench.analysis.diagnostics.ess import kish_ess
from vcpo_bench.analysis.monitoring.calibration import Calibration
from vcpo_bench.analysis.monitoring.detectors import Detector

LOUD = Calibration(Detector("ess", 1, 1e-6), None, None, None, "no study", 0, 0)
"""Raises an alarm as soon as the weights differ at all."""


def monitored(folder: Path, method: str | None, **changes: Any) -> tuple[Any, Any]:
    run = trainer(folder, method, **changes)
    callback = MonitorCallback(run, calibrations=[LOUD])
    run.add_callback(callback)
    return run, callback


def entries(run: Any) -> list[dict[str, Any]]:
    return [entry for entry in run.state.log_history if "monitor/ess" in entry]


def test_a_plain_trainer_gets_the_gauges_of_its_raw_weights(tmp_path: Path) -> None:
    run, callback = monitored(tmp_path, None, max_steps=4, num_iterations=2, learning_rate=1e-2)
    heard: list[np.ndarray] = []

    class Oracle(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            if state.global_step % 2:
                weights = []
                for samples in run._buffered_inputs:
                    ids = torch.cat([samples["prompt_ids"], samples["completion_ids"]], 1)
                    attended = torch.cat([samples["prompt_mask"], samples["completion_mask"]], 1)
                    with torch.no_grad():
                        logits = run.model(input_ids=ids, attention_mask=attended, use_cache=False).logits
                    width = samples["completion_ids"].shape[1]
                    logs = (logits[:, -width - 1 : -1] / run.temperature).log_softmax(-1)
                    logp = logs.gather(-1, samples["completion_ids"].unsqueeze(-1)).squeeze(-1)
                    weights.append(((logp - samples["old_per_token_logps"]) * samples["completion_mask"]).sum(1))
                heard.append(torch.cat(weights).double().numpy())

    run.add_callback(Oracle())
    run.train()
    logged = entries(run)
    assert len(logged) == 4
    assert [entry["monitor/ess"] for entry in logged[::2]] == pytest.approx([1.0, 1.0], abs=1e-6)
    for entry, weights in zip(logged[1::2], heard, strict=True):
        assert entry["monitor/ess"] == pytest.approx(float(kish_ess(weights)), rel=1e-4)
        assert entry["monitor/ess"] < 0.9999
        assert entry["monitor/log_weight_q95"] == pytest.approx(np.quantile(weights, 0.95), abs=1e-4)
        assert entry["monitor/max_share"] > 1 / 16
    for entry in logged:
        assert entry["monitor/entropy"] == pytest.approx(entry["entropy"])
    assert callback.reading.n == 16
    assert callback.seconds > 0


def test_the_log_probabilities_of_the_engine_come_first(tmp_path: Path) -> None:
    class Engine(GRPOTrainer):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            samples = super()._generate_and_score_completions(inputs)
            samples["sampling_per_token_logps"] = torch.full(samples["completion_ids"].shape, -1.0)
            samples["sampling_per_token_logps"][0] = torch.nan
            return samples

    run, _ = monitored(tmp_path, None, base=Engine, max_steps=1)
    run.train()
    (entry,) = entries(run)
    assert entry["monitor/ess"] < 0.9
    assert entry["monitor/nonfinite"] == 0


def test_a_run_with_a_method_shares_its_scoring_pass(tmp_path: Path) -> None:
    run, callback = monitored(tmp_path, "tis", lag="fifo(2)", max_steps=5, learning_rate=1e-2)
    run.train()
    logged = entries(run)
    assert [entry["monitor/ess"] for entry in logged] == pytest.approx(
        [entry["vcpo_bench/ess_ratio"] for entry in logged], rel=1e-4
    )
    assert not callback._heard


def test_an_alarm_is_a_warning_once_and_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run, _ = monitored(tmp_path, "tis", lag="fifo(1)", max_steps=5, learning_rate=1e-2)
    run.train()
    spoken = [record.getMessage() for record in caplog.records if "alarm at update" in record.getMessage()]
    assert len(spoken) == 1
    assert "ess" in spoken[0]
    assert "rate not measured" in spoken[0]
    assert [entry["monitor/alarms"] for entry in entries(run)] == [0, 1, 1, 1, 1]
    assert run.state.global_step == 5
    assert not list(tmp_path.glob("checkpoint-*"))


def test_it_stops_when_asked_once_and_after_a_checkpoint(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"lag": "fifo(1)", "max_steps": 5, "learning_rate": 1e-2}
    run = trainer(tmp_path, "tis", **settings)
    run.add_callback(MonitorCallback(run, calibrations=[LOUD], stop_on_alarm=True))
    run.train()
    assert run.state.global_step == 2
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-2"]
    resumed = trainer(tmp_path, "tis", **settings)
    callback = MonitorCallback(resumed, calibrations=[LOUD], stop_on_alarm=True)
    resumed.add_callback(callback)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert resumed.state.global_step == 5
    assert callback.reading.alarms
    whole = trainer(tmp_path / "whole", "tis", **settings)
    whole.train()
    for name, value in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], value)


def test_a_loss_that_cannot_be_heard_is_one_warning_and_the_run_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class OwnLoss(GRPOTrainer):  # type: ignore[misc]
        def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            return model(input_ids=inputs["completion_ids"]).logits.mean()

    run, callback = monitored(tmp_path, None, base=OwnLoss, max_steps=3)
    run.train()
    assert run.state.global_step == 3
    assert callback.reading is None
    said = [record.getMessage() for record in caplog.records if "monitor is off" in record.getMessage()]
    assert len(said) == 1
    assert "OwnLoss computes its loss without" in said[0]
