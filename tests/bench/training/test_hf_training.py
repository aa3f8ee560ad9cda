"""Cells that train a language model: every part of a cell that an embedded policy has, on a tiny random Llama."""

import json
import math
from pathlib import Path
from typing import Any

import hf_models
import pytest
import torch

from vcpo_bench.bench.cells.model_source import fingerprint, model_identity
from vcpo_bench.bench.feeding.source import StepInput
from vcpo_bench.bench.tasks.text.arithmetic import Arithmetic
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.errors import UsageError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hf_models.save(tmp_path_factory.mktemp("model"))


@pytest.fixture(autouse=True)
def _rewarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random models are never right: reward something they do by chance."""
    monkeypatch.setattr(Arithmetic, "score", lambda self, item, text: (sum(map(ord, text)) % 5) / 4)


def weights(trainer: Trainer) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in trainer.policy.parameters()])


def updates(trainer: Trainer, count: int) -> list[StepInput]:
    """Train; what each update was given."""
    given: list[StepInput] = []
    next_batch = trainer.source.next_batch

    def watched(update: int) -> StepInput:
        given.append(next_batch(update))
        return given[-1]

    trainer.source.next_batch = watched  # type: ignore[method-assign]
    for _ in range(count):
        trainer.advance()
    return given


@pytest.mark.parametrize("method", ["vcpo", "vespo", "clip"])
def test_a_cell_trains_at_the_lag_it_was_asked_for(folder: Path, method: str) -> None:
    trainer = hf_models.trainer(folder, method, staleness=2)
    before = weights(trainer)
    given = updates(trainer, 4)
    assert [int(step - each.batch.version.max()) for step, each in enumerate(given)] == [0, 1, 2, 2]
    assert not torch.equal(weights(trainer), before)
    steps = trainer.recorder.tables["steps.parquet"].columns
    assert steps["nonfinite"] == [""] * 4
    assert steps["ess_ratio"][0] == pytest.approx(1.0, abs=1e-4)
    assert steps["ess_ratio"][3] < 0.999


@pytest.mark.parametrize(
    ("regime", "more"),
    [
        ("fifo(publish_every=2,engine_noise=bf16)", {"method": "vcpo"}),
        ("inflight", {"staleness": 3}),
        ("async(clock=virtual)", {"sampler": "torch(slots=3)"}),
        ("fifo", {"lora": 2, "checkpointing": True, "micro_tokens": 60}),
    ],
)
def test_interrupted_is_the_same_as_never_interrupted(
    folder: Path, tmp_path: Path, regime: str, more: dict[str, Any]
) -> None:
    settings = {"staleness": 2, "regime": regime} | more
    straight, stopped = (hf_models.trainer(folder, **settings) for _ in range(2))
    for _ in range(2):
        straight.advance()
        stopped.advance()
    stopped.save(tmp_path)
    resumed = hf_models.trainer(folder, **settings)
    resumed.load(tmp_path)
    for _ in range(2):
        straight.advance()
        resumed.advance()
    assert torch.equal(weights(straight), weights(resumed))


@pytest.mark.parametrize("method", ["clip", "vcpo"])
def test_the_update_does_not_depend_on_micro_batches(folder: Path, method: str) -> None:
    found = []
    for tokens in (0, 50):
        trainer = hf_models.trainer(folder, method, micro_tokens=tokens)
        given = updates(trainer, 1)[0]
        assert (len(trainer.learner._cut(given.batch)) > 1) == bool(tokens)
        found.append(torch.cat([p.grad.flatten() for p in trainer.policy.parameters() if p.grad is not None]))
    torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=1e-5)


def test_adapters_alone_are_trained_and_saved_and_start_at_the_model_itself(folder: Path, tmp_path: Path) -> None:
    whole, adapted = (hf_models.trainer(folder, lora=rank, record="diagnostics") for rank in (0, 2))
    batches = [updates(one, 1)[0].batch for one in (whole, adapted)]
    assert torch.equal(batches[0].responses, batches[1].responses)
    torch.testing.assert_close(batches[0].behavior_logp, batches[1].behavior_logp, rtol=0, atol=1e-5)
    fresh = hf_models.trainer(folder, lora=2)
    moved = {n for (n, a), b in zip(adapted.policy.named_parameters(), fresh.policy.parameters(), strict=True)
             if not torch.equal(a, b)}  # fmt: skip
    assert moved
    assert all("lora_" in name for name in moved)
    assert not any("lm_head" in name for name in moved)
    adapted.save(tmp_path)
    assert (tmp_path / "state.safetensors").stat().st_size < 60_000
    heads = [one.recorder.tables["steps.parquet"].columns["head_grad_norm"][0] for one in (whole, adapted)]
    assert heads[0] > 0
    assert math.isnan(heads[1])


@pytest.mark.parametrize("method", ["clip", "vcpo"])
def test_bfloat16_learns_with_small_ratios_at_lag_0(folder: Path, method: str) -> None:
    trainer = hf_models.trainer(folder, method, dtype="bfloat16", lora=2)
    updates(trainer, 2)
    frozen = {p.dtype for p in trainer.policy.parameters() if not p.requires_grad}
    assert frozen == {torch.bfloat16}
    assert {p.dtype for p in trainer.policy.trainable()} == {torch.float32}
    steps = trainer.recorder.tables["steps.parquet"].columns
    assert steps["nonfinite"] == ["", ""]
    assert steps["ess_ratio"][0] > 0.9


def test_an_asynchronous_sampler_process_serves_a_language_model(folder: Path) -> None:
    trainer = hf_models.trainer(folder, staleness=1, regime="async", steps=3)
    try:
        given = updates(trainer, 3)
    finally:
        trainer.close()
    lags = [step - each.batch.version for step, each in enumerate(given)]
    assert max(int(lag.max()) for lag in lags) <= 1
    for each in given[:1]:
        assert float(each.batch.behavior_logp[each.batch.mask].mean()) < 0


def test_weights_decide_the_identity_of_a_model_and_notes_beside_them_do_not(folder: Path, tmp_path: Path) -> None:
    first = hf_models.save(tmp_path / "a", seed=1)
    second = hf_models.save(tmp_path / "b", seed=1)
    other = hf_models.save(tmp_path / "c", seed=2)
    (second / "README.md").write_text("notes")
    assert fingerprint(first) == fingerprint(second) != fingerprint(other)
    assert model_identity(str(first)) == f"a@{fingerprint(first)}"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"task": "arithmetic(terms=8)", "max_response": 120}, "128"),
        ({"task": "chain"}, "drop --model, or choose a text task"),
        pytest.param(
            {"device": "cuda"},
            "CUDA devices",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="a missing GPU is refused where there is none"),
        ),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(folder: Path, settings: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        hf_models.trainer(folder, **settings)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_model_or_tokenizer_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(UsageError, match="tokenizer"):
        hf_models.trainer(tmp_path)
