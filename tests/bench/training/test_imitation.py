"""Supervised warm-up: it reaches its target again, its command writes what loads, a task too hard is reported."""

from pathlib import Path

import pytest
import torch

from vcpo_bench.bench.policies.warm_start import TINY, read_warm_start
from vcpo_bench.bench.tasks import token_task
from vcpo_bench.bench.training.imitation import Pace, imitate, warm_up, warmup_command
from vcpo_bench.errors import UsageError


@pytest.mark.slow
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


def test_a_task_that_is_not_learned_is_reported() -> None:
    task = token_task("chain")
    with pytest.raises(UsageError, match=r"chain: reward 0\.00 after 5 warm-up updates"):
        imitate(TINY.untrained(task, 0), task, 0, pace=Pace(limit=5))
