"""`--trainer verl`: what is refused before anything starts, and the configuration of its cells. No verl is needed."""

from pathlib import Path
from typing import Any

import pytest

from vcpo_bench.adapters.trainers.verl import Verl
from vcpo_bench.adapters.verl.cell.prompts import ground_truth, score
from vcpo_bench.adapters.verl.cell.settings import overrides, settings_of
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.run_grid import check_gpus
from vcpo_bench.bench.running.schedulers.catalog import LAUNCHERS
from vcpo_bench.bench.tasks.text.base import text_task
from vcpo_bench.bench.trainers.job import TrainerJob
from vcpo_bench.errors import UsageError


def cell(trainer: str = "verl", **settings: Any) -> CellConfig:
    values = {"method": "vespo", "staleness": 4, "seed": 0, "task": "arithmetic", "model": "tiny@0", "device": "cuda"}
    return CellConfig(**(values | {"trainer": trainer} | settings))


def refuse(trainer: str = "verl", **settings: Any) -> None:
    config = cell(trainer, **settings)
    config.parts.trainer.refuse(config, config.parts.method, config.parts.task)


@pytest.mark.parametrize(
    ("trainer", "settings", "reason"),
    [
        ("verl", {"method": "vcpo"}, "vcpo: it .* \\(verl\\(lag=colocate\\)"),
        ("verl", {"method": "gac"}, "gac: it compares whole gradients"),
        ("verl", {"method": "decoupled"}, "decoupled: it needs a proximal policy"),
        ("verl", {"method": "drift-cap"}, "drift-cap.*: it asks how far the weights have moved"),
        ("verl", {"method": "clip+ess"}, r"it scales the learning rate .* \(verl\(lag=colocate\)"),
        ("verl", {"method": "clip+rloo"}, "the advantage is the trainer's"),
        ("verl", {"device": "cpu"}, "add --device cuda"),
        ("verl", {"regime": "minibatch"}, "drop --regime minibatch"),
        ("verl", {"optimizer": "muon"}, "drop --optimizer muon"),
        ("verl", {"sampler": "vllm"}, "drop --sampler vllm"),
        ("verl", {"lora": 8}, "drop --lora"),
        ("verl", {"record": "full"}, "drop --record full"),
        ("verl", {"stop": "ess(low=0.1)"}, "drop --stop-on-alarm"),
        ("verl", {"task": "calc-text"}, "calc-text is a conversation"),
        ("verl(gpus=3)", {"prompts": 4, "responses": 4}, "4 x 4 responses do not divide among 3 GPUs"),
        ("verl", {"model": "", "task": "walk"}, "name one with --model"),
    ],
)
def test_a_cell_that_verl_cannot_carry_is_refused_with_the_reason(
    trainer: str, settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        refuse(trainer, **settings)


@pytest.mark.parametrize(
    ("trainer", "method", "lag"),
    [
        ("verl", "clip", 4),
        ("verl", "clip+ess", 0),
        ("verl(lag=colocate)", "vcpo", 4),
        ("verl(lag=exact)", "clip+rloo", 4),
    ],
)
def test_other_cells_are_accepted(trainer: str, method: str, lag: int) -> None:
    refuse(trainer, method=method, staleness=lag)


def test_too_few_gpus_are_refused_and_those_of_a_cluster_are_not_counted() -> None:
    def planned(trainer: str) -> list[PlannedCell]:
        return [PlannedCell(cell(trainer), "key", False, 1.0, 3, Path("tiny"))]

    apart = planned("verl(gpus=4,rollout_gpus=4)")
    with pytest.raises(UsageError, match=r"gives a cell 4 GPU, .* takes 8; write slurm"):
        check_gpus(apart, LAUNCHERS.parse("slurm(gpus=4)"))
    with pytest.raises(UsageError, match="a cell takes 8 GPUs, and --device cuda has"):
        check_gpus(apart, LAUNCHERS.parse("local"))
    check_gpus(apart, LAUNCHERS.parse("slurm(gpus=8)"))
    check_gpus(planned("verl(gpus=4,address=http://head:8265)"), LAUNCHERS.parse("local"))
    assert [one.ranks for one in (Verl(gpus=4), Verl(gpus=4, lag="exact"))] == [5, 4]


def settings(trainer: str, **changes: Any) -> dict[str, Any]:
    config = cell(trainer, **changes)
    job = TrainerJob(key="k", config=config.changed(), updates=60, model="/m", resume="")
    return settings_of(job, (20, 30), Path("/job"))


def test_each_lag_has_the_settings_of_its_mode() -> None:
    found = [settings(f"verl(lag={lag})") for lag in ("exact", "separate", "colocate")]
    modes = [one["trainer.v1.trainer_mode"] for one in found]
    assert modes == ["vcpo_bench", "separate_async", "vcpo_bench_colocate_async"]
    assert found[0]["+trainer.v1.sampler.sampler_kwargs.lag"] == 4
    for one, mode in zip(found[1:], ("separate_async", "colocate_async"), strict=True):
        assert one["trainer.v1.sampler.max_off_policy_threshold"] == 5
        assert one[f"trainer.v1.{mode}.num_warmup_batches"] == 4
    assert [one["algorithm.rollout_correction.bypass_mode"] for one in found] == [False, True, False]
    assert found[1]["trainer.v1.separate_async.parameter_sync_step"] == 1
    calm = settings("verl", staleness=0)
    assert calm["trainer.v1.trainer_mode"] == "vcpo_bench"
    assert not any("sampler" in name for name in calm)


def test_a_reference_is_loaded_where_the_method_asks_for_one() -> None:
    name = "actor_rollout_ref.actor.use_kl_loss"
    assert settings("verl(lag=exact)", method="vespo+kl(anchor=reference,beta=0.1)")[name] is True
    assert name not in settings("verl(lag=exact)")


def test_values_are_written_as_hydra_reads_them() -> None:
    made = {"a": 'say "x"', "b": None, "c": [1, "d"], "e": {"f": 1e-8}, "g": True}
    assert overrides(made) == ['a="say \\"x\\""', "b=null", 'c=[1,"d"]', "e={f:1e-08}", "g=True"]


@pytest.mark.parametrize("expression", ["arithmetic(terms=2)", "countdown", "running-sums", "quiz"])
def test_rewards_need_nothing_but_the_data(expression: str) -> None:
    task = text_task(expression)
    item = task.item(0, 0, 0)
    truth = ground_truth(task, item)
    assert score("cell", task.demonstration(item), truth) == 1.0
    assert score("cell", "no answer", truth) == task.score(item, "no answer")
