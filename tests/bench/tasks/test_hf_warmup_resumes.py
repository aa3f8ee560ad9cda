"""A warm-up that is stopped goes on where it was, whatever instant it is stopped at."""

from pathlib import Path
from typing import Any

import hf_models
import pytest
import torch
from transformers import AutoModelForCausalLM

import vcpo_bench.bench.training.imitation_hf as warm
from vcpo_bench.bench.training import imitation, imitation_state
from vcpo_bench.errors import UsageError


class StoppedHere(BaseException):
    """As a signal."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "CHECK_EVERY", 2)
    monkeypatch.setattr(imitation_state, "SAVE_SECONDS", 0.0)
    rewards = iter(range(1000))
    monkeypatch.setattr(imitation, "_check", lambda *_: 0.0 if next(rewards) % 3 != 2 else 1.0)


def make(out: Path, seed: int = 0) -> warm.Warmed:
    return warm.warm_up_model(hf_models.TASK, out, new="llama(50k)", target=0.5, seed=seed)


def weights(folder: Path) -> torch.Tensor:
    return torch.cat([p.flatten() for p in AutoModelForCausalLM.from_pretrained(folder).parameters()])


def stop_at(monkeypatch: pytest.MonkeyPatch, update: int) -> None:
    whole = imitation._supervised_update

    def stopped(policy: Any, optimizer: Any, task: Any, seed: int, step: int, rows: int) -> None:
        if step == update:
            raise StoppedHere
        whole(policy, optimizer, task, seed, step, rows)

    monkeypatch.setattr(imitation, "_supervised_update", stopped)


def test_it_ends_as_if_it_had_not_been_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert make(tmp_path / "whole").steps == 6
    rewards = iter((0.0, 0.0, 1.0))
    monkeypatch.setattr(imitation, "_check", lambda *_: next(rewards))
    with monkeypatch.context() as patch, pytest.raises(StoppedHere):
        stop_at(patch, 3)
        make(tmp_path / "cut")
    assert make(tmp_path / "cut").steps == 6
    assert torch.equal(weights(tmp_path / "whole"), weights(tmp_path / "cut"))
    assert not (tmp_path / "cut" / warm.STATE_FILE).exists()
    assert not (tmp_path / "cut" / warm.DRAFT).exists()


def test_a_kill_while_the_model_is_written_is_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each file in turn; none but the last makes the folder one that holds a model."""
    replace = Path.replace
    for count in range(3):
        moved: list[str] = []

        def killed(path: Path, target: Path, moved: list[str] = moved, count: int = count) -> Path:
            if path.parent.name == warm.DRAFT:
                moved.append(path.name)
                if len(moved) > count:
                    raise StoppedHere
            return replace(path, target)

        with monkeypatch.context() as patch, pytest.raises(StoppedHere):
            patch.setattr(Path, "replace", killed)
            make(tmp_path)
    assert make(tmp_path).steps > 0
    assert (tmp_path / warm.ORIGIN_FILE).exists()
    with pytest.raises(UsageError, match="holds a model already"):
        make(tmp_path)


def test_a_state_of_another_warm_up_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(StoppedHere):
        stop_at(patch, 3)
        make(tmp_path)
    with pytest.raises(UsageError, match="is of another warm-up"):
        make(tmp_path, seed=1)
    (tmp_path / warm.STATE_FILE).write_bytes(b"PK no")
    with pytest.raises(UsageError, match="cannot be read"):
        make(tmp_path)


def test_larger_models_learn_more_slowly() -> None:
    assert warm.learning_rate(10**6) == warm.learning_rate(9 * 10**6) == warm.LEARNING_RATE
    assert warm.learning_rate(10**8) == pytest.approx(6.7e-4, rel=0.01)


@pytest.mark.parametrize(("instructions", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_an_existing_model_is_trained_in_bfloat16_where_that_is_fast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instructions: bool, dtype: torch.dtype
) -> None:
    make(tmp_path / "new")
    used: list[torch.dtype] = []
    monkeypatch.setattr(warm, "multiplies_bfloat16", lambda device: instructions)
    monkeypatch.setattr(warm, "imitate", lambda policy, *_: (used.append(policy.dtype), (1, 1.0))[1])
    warm.warm_up_model(hf_models.TASK, tmp_path / "again", model=str(tmp_path / "new"))
    assert used == [dtype]
