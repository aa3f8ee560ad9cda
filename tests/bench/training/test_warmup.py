from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from vcpo_bench.bench.tasks import TASKS, TokenTask, token_task
from vcpo_bench.bench.training.evaluation import evaluate
from vcpo_bench.bench.training.imitation import (
    WarmStart,
    load_warm_start,
    new_policy,
    read_warm_start,
    save_warm_start,
    warm_up,
    warmup_command,
)
from vcpo_bench.errors import UsageError

SHIPPED = Path(__file__).parents[3] / "bench" / "policies" / "tiny" / "warm"


@pytest.mark.parametrize("name", [name for name, kind in TASKS.kinds.items() if issubclass(kind, TokenTask)])
def test_the_shipped_start_is_about_a_third_right_and_still_random(name: str) -> None:
    task = token_task(name)
    start = read_warm_start(task)
    measured = evaluate(start.policy, task)
    assert measured.sampled_reward == pytest.approx(start.reward, abs=0.02)
    assert 0.25 < measured.sampled_reward < 0.45
    assert measured.entropy > 0.3
    assert (SHIPPED / f"{name}.safetensors").stat().st_size < 1_000_000


def test_walk_is_regenerated_to_the_shipped_accuracy() -> None:
    """About 6 s on one thread. Other processors round differently, so the weights need not agree, the reward must."""
    task = token_task("walk")
    again, shipped = warm_up(task), read_warm_start(task)
    assert again.reward == pytest.approx(shipped.reward, abs=0.12)  # each is a mean of 256: four standard errors
    assert again.steps == pytest.approx(shipped.steps, rel=0.3)
    assert again.task == "walk"


def test_the_command_writes_what_loads(tmp_path: Path) -> None:
    start, path = warmup_command("walk(5)", tmp_path / "new" / "start.safetensors", seed=3)
    assert start.task == "walk(T=5)"
    loaded = read_warm_start(token_task("walk(T=5)"), path)
    assert (loaded.seed, loaded.steps, loaded.reward) == (3, start.steps, pytest.approx(start.reward, abs=1e-4))
    for name, weight in start.policy.state_dict().items():
        assert torch.equal(weight, loaded.policy.state_dict()[name])
    assert [file.name for file in path.parent.iterdir()] == ["start.safetensors"]


def test_a_variant_without_a_start_names_the_command() -> None:
    with pytest.raises(
        UsageError, match=r"no warm start for task 'chain\(n=8\)'.*vcpo-bench warmup --task 'chain\(n=8\)'"
    ):
        load_warm_start(token_task("chain(8)"))


def untrained(task: str) -> WarmStart:
    return WarmStart(task, new_policy(token_task(task)), seed=0, steps=0, reward=0.0)


def test_a_start_of_another_task_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "start.safetensors"
    save_warm_start(replace(untrained("chain"), task="chain"), path)
    with pytest.raises(UsageError, match="is for task 'chain', not 'walk'"):
        load_warm_start(token_task("walk"), path)


@pytest.mark.parametrize("damage", ["cut", "text", "tensor missing", "no origin"])
def test_a_damaged_start_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "start.safetensors"
    save_warm_start(untrained("chain"), path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:1000])
    elif damage == "text":
        path.write_text("not weights")
    elif damage == "tensor missing":
        weights = load_file(path)
        del weights["head.bias"]
        save_file(weights, path, {"task": "chain", "seed": "0", "steps": "0", "reward": "0"})
    else:
        save_file(load_file(path), path, {"task": "chain"})
    with pytest.raises(UsageError, match="is damaged; make one with"):
        load_warm_start(token_task("chain"), path)


def test_a_task_that_is_not_learned_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vcpo_bench.bench.training.imitation._LIMIT", 5)
    with pytest.raises(UsageError, match=r"chain: reward 0\.00 after 5 warm-up updates"):
        warm_up(token_task("chain"))


def test_an_unwritable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write the warm start"):
        save_warm_start(untrained("chain"), tmp_path / "file" / "start.safetensors")
