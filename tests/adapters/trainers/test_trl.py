"""`--trainer trl`: what is refused before anything starts, and the commands of its cells; releases of verl too."""

from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from vcpo_bench.adapters.trainers.trl import Trl
from vcpo_bench.adapters.trainers.verl import Verl
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.running.run_grid import check_gpus, check_packages
from vcpo_bench.bench.running.schedulers.catalog import LAUNCHERS
from vcpo_bench.bench.trainers.catalog import TRAINERS
from vcpo_bench.errors import UsageError
from vcpo_bench.records.settings import CellSettings


def refuse(trainer: str = "trl", **settings: Any) -> None:
    values = {"method": "vcpo", "staleness": 4, "seed": 0, "task": "arithmetic", "model": "tiny@0", "trainer": trainer}
    config = CellConfig(**(values | settings))
    config.parts.trainer.refuse(config, config.parts.method, config.parts.task)


@pytest.mark.parametrize(
    ("trainer", "settings", "reason"),
    [
        ("trl", {"method": "drift-cap"}, "drift-cap.*: it asks how far the weights have moved"),
        ("trl", {"method": "decoupled"}, "decoupled: it needs a proximal policy"),
        ("trl", {"regime": "minibatch"}, "drop --regime minibatch"),
        ("trl", {"regime": "fifo(publish_every=2)"}, "drop --regime"),
        ("trl", {"optimizer": "muon"}, "it steps with AdamW; drop --optimizer muon"),
        ("trl", {"optimizer": "adamw(reset=9)"}, "it steps with AdamW"),
        ("trl", {"sampler": "vllm"}, "drop --sampler vllm"),
        ("trl", {"responses": 1}, "two or more --responses"),
        ("trl", {"task": "calc-text"}, "calc-text is a conversation"),
        ("trl(processes=3)", {"prompts": 4, "responses": 4}, "4 x 4 responses do not divide among 3 processes"),
        ("trl", {"model": "", "task": "walk"}, "name one with --model"),
    ],
)
def test_a_cell_that_trl_cannot_carry_is_refused_with_the_reason(
    trainer: str, settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        refuse(trainer, **settings)


@pytest.mark.parametrize(
    "settings", [{}, {"regime": "fifo(fill=hold)"}, {"method": "gac"}, {"optimizer": "adamw(beta2=0.95)"}]
)
def test_other_cells_are_accepted(settings: dict[str, Any]) -> None:
    refuse(**settings)


def accelerate_config(folder: Path, text: str) -> Path:
    path = folder / "accelerate.yaml"
    path.write_text(text)
    return path


def test_a_file_of_accelerate_says_how_many_processes_there_are_and_whether_weights_are_whole(tmp_path: Path) -> None:
    path = accelerate_config(tmp_path, "distributed_type: FSDP\nnum_processes: 8\n")
    trainer = Trl(accelerate=str(path))
    assert (trainer.ranks, trainer.sharded) == (8, True)
    command = trainer.command(Path("job.json"))
    assert command[1:5] == ["-m", "accelerate.commands.launch", "--config_file", str(path)]
    with pytest.raises(UsageError, match="vcpo: score norms need whole weights"):
        refuse(trainer.text(), prompts=4, responses=4)
    with pytest.raises(UsageError, match="gac: it compares whole gradients"):
        refuse(trainer.text(), method="gac")
    refuse(trainer.text(), method="vespo")
    assert not Trl(accelerate=str(accelerate_config(tmp_path, "num_processes: 2\n"))).sharded


@pytest.mark.parametrize(
    ("text", "reason"), [(None, "there is no file"), ("- a list", "must contain lines such as"), ("{", "invalid YAML")]
)
def test_a_file_that_is_none_of_accelerate_is_refused(tmp_path: Path, text: str | None, reason: str) -> None:
    path = tmp_path / "accelerate.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=reason):
        refuse(f"trl(accelerate={path})")


def test_several_processes_are_started_by_accelerate_on_a_free_port() -> None:
    assert Trl().command(Path("job.json"))[1:] == ["-m", "vcpo_bench.adapters.trl.cell.train", "job.json"]
    command = " ".join(Trl(processes=2).command(Path("job.json"))[1:])
    assert command.startswith("-m accelerate.commands.launch --multi_gpu --num_processes 2 ")
    assert "--main_process_port 0 -m vcpo_bench.adapters.trl.cell.train job.json" in command


def planned(**changes: Any) -> PlannedCell:
    config = CellConfig(
        **({"method": "clip", "staleness": 0, "seed": 0, "task": "arithmetic", "model": "tiny@0"} | changes)
    )
    return PlannedCell(config, "key", False, 1.0, 3, Path("tiny"))


@pytest.mark.parametrize(
    ("trainer", "version", "reason"),
    [
        ("trl", None, "TRL is not installed; pip install"),
        ("trl", "1.17.0", "TRL 1.17.0 was not tested"),
        ("verl", None, "verl is not installed; pip install"),
        ("verl", "0.10.0", "verl 0.10.0 was not tested"),
    ],
)
def test_a_missing_or_untested_release_is_refused(
    monkeypatch: pytest.MonkeyPatch, trainer: str, version: str | None, reason: str
) -> None:
    def found(name: str) -> str:
        if version is None:
            raise metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(metadata, "version", found)
    with pytest.raises(UsageError, match=reason):
        check_packages([planned(trainer=trainer)])


def test_the_tested_release_is_accepted_and_vllm_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "0.9.1")
    Verl().check_installed()
    monkeypatch.setattr(metadata, "version", lambda name: "1.16.3")
    monkeypatch.setattr("vcpo_bench.adapters.trainers.trl.find_spec", lambda name: None)
    Trl().check_installed()
    with pytest.raises(UsageError, match="vLLM is not installed"):
        Trl(vllm="colocate").check_installed()


def test_too_few_gpus_are_refused() -> None:
    cells = [planned(trainer="trl(processes=8)", device="cuda")]
    with pytest.raises(UsageError, match=r"gives a cell 4 GPU, trl\(processes=8\) takes 8; write slurm\(gpus=8\)"):
        check_gpus(cells, LAUNCHERS.parse("slurm(gpus=4)"))
    check_gpus(cells, LAUNCHERS.parse("slurm(gpus=8)"))
    with pytest.raises(UsageError, match="a cell takes 8 GPUs, and --device cuda has"):
        check_gpus([planned(trainer="trl(processes=8)", device="cuda")], LAUNCHERS.parse("local"))
    check_gpus([planned(trainer="trl(processes=8)")], LAUNCHERS.parse("local"))


def test_the_trainer_is_part_of_the_key_unless_it_is_our_own() -> None:
    own, named, trl = (planned(**more).config.key(1) for more in ({}, {"trainer": "own"}, {"trainer": "trl"}))
    assert own == named != trl
    assert TRAINERS.parse("own").text() == CellSettings.trainer
    assert {"own", "trl"} <= set(TRAINERS.names())


def test_a_token_task_needs_no_trainer() -> None:
    spec = GridSpec(("clip",), (0,), (0,), settings=CellSettings(trainer="trl"))
    with pytest.raises(UsageError, match="--trainer: applies only to language models; add --model"):
        plan_grid(spec)
