"""Cells that cannot be spread over several processes are refused when they are planned, in one line."""

from typing import Any

import pytest

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.shard_rules import check_shards
from vcpo_bench.bench.running.pool.worker import worker_device
from vcpo_bench.bench.running.run_grid import worker_count
from vcpo_bench.errors import UsageError
from vcpo_bench.records.settings import CellSettings


def cell(**settings: Any) -> CellConfig:
    usual = {"method": "vcpo", "staleness": 2, "seed": 0, "task": "arithmetic", "model": "tiny@0", "shards": 4}
    return CellConfig(**(usual | settings))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"lora": 8, "dtype": "bfloat16", "checkpointing": True, "micro_tokens": 100},
        {"optimizer": "sgd"},
        {"method": "clip+gac", "regime": "minibatch", "staleness": 3},
        {"sampler": "generate", "regime": "fifo(engine_noise=0.05)"},
    ],
)
def test_most_cells_can_be_sharded(settings: dict[str, Any]) -> None:
    check_shards(cell(**settings))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"prompts": 3, "responses": 3}, "3 x 3 trajectories cannot be divided by 4; use a number that divides 9"),
        ({"sampler": "vllm"}, "use torch"),
        ({"optimizer": "muon"}, "use adamw or sgd"),
        ({"regime": "inflight"}, "use fifo"),
        ({"regime": "async(clock=virtual)"}, "use fifo"),
        ({"regime": "fifo(publish_every=2)"}, "drop publish_every"),
        ({"regime": "fifo(engine_noise=bf16)"}, "drop publish_every and engine_noise"),
        ({"method": "reinforce+lr-matched"}, "which one process reads; use --shards 1"),
        ({"method": "dc-asgd"}, "past versions; use --shards 1"),
        ({"method": "clip+gap-aware"}, "past versions; use --shards 1"),
    ],
)
def test_what_cannot_is_named_with_what_to_do(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=r"\A--shards 4: [^\n]*\Z") as caught:
        check_shards(cell(**settings))
    assert said in str(caught.value)
    check_shards(cell(**(settings | {"shards": 1})))


def test_a_single_gpu_cannot_be_named_and_gpus_go_to_workers_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = GridSpec(("vcpo",), (1,), (0,), settings=CellSettings(shards=2), model="tiny", device="cuda:1")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 8)
    with pytest.raises(UsageError, match=r"--shards takes several GPUs; use --device cuda$"):
        spec.check()
    assert worker_count(0, "cuda", shards=2) == 4
    assert [worker_device("cuda", position, 8, 2) for position in range(3)] == ["cuda:0", "cuda:2", "cuda:4"]
    assert [worker_device("cuda", position, 5, 2) for position in range(3)] == ["cuda:0", "cuda:2", "cuda:0"]
    with pytest.raises(UsageError, match=r"^--shards 16: this machine has 8 CUDA devices; use at most 8$"):
        worker_count(0, "cuda", shards=16)


def test_the_tiny_policy_is_not_sharded() -> None:
    with pytest.raises(UsageError, match=r"^--shards: applies only to language models"):
        GridSpec(("vcpo",), (1,), (0,), settings=CellSettings(shards=2)).check()
