"""A cell on a Tinker server with a tokenizer and a text task: what opens its policy, and its refusals."""

from pathlib import Path

import hf_models
import pytest
import tinker_cells

from vcpo_bench.bench.cells.opening import open_policy
from vcpo_bench.bench.training import build
from vcpo_bench.errors import UsageError


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hf_models.save(tmp_path_factory.mktemp("models") / "qwen3")


def test_a_text_task_is_trained_with_adapters_on_the_base_model_of_the_server(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = tinker_cells.connect(monkeypatch, tokens=hf_models.VOCABULARY)
    monkeypatch.setattr(build, "open_policy", open_policy)
    settings = {"task": hf_models.TASK, "model": "qwen3@0", "sampler": "tinker", "learner": "tinker(rank=8)"}
    trainer = build.build_trainer(tinker_cells.config("vcpo(baseline=group)", 1, **settings), start=model)
    for _ in range(3):
        trainer.advance()
    assert server.opened["base_model"] == "models/qwen3"
    assert (server.opened["rank"], server.opened["train_unembed"]) == (8, False)
    assert server.opened["base_url"] == "http://server.test:8000"
    assert server.opened["default_headers"]["Authorization"].startswith("Basic ")
    assert len(server.steps) == 3


def test_a_task_that_does_not_fit_into_the_context_is_refused(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tinker_cells.connect(monkeypatch, tokens=hf_models.VOCABULARY)
    monkeypatch.setattr(build, "open_policy", open_policy)
    settings = {"task": hf_models.TASK, "model": "qwen3@0", "sampler": "tinker", "max_response": 500}
    with pytest.raises(UsageError, match="context of 128"):
        build.build_trainer(tinker_cells.config(**settings), start=model)


def test_a_server_that_does_not_answer_is_named_without_its_secrets(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, line = tinker_cells.connect(monkeypatch, tokens=hf_models.VOCABULARY)
    monkeypatch.setattr(build, "open_policy", open_policy)
    line.away = True
    settings = {"task": hf_models.TASK, "model": "qwen3@0", "sampler": "tinker"}
    with pytest.raises(UsageError, match=r"--url http://server.test:8000: no Tinker server answers") as refused:
        build.build_trainer(tinker_cells.config(**settings), start=model)
    assert "secret" not in str(refused.value)
