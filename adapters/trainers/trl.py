"""trl: a cell is a run of TRL's `GRPOTrainer`, in processes of its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from vcpo_bench.bench.tasks.catalog import NamedTask
from vcpo_bench.bench.trainers.catalog import OutsideTrainer
from vcpo_bench.errors import UsageError, how_to_install
from vcpo_bench.files.plain_yaml import read_yaml
from vcpo_bench.methods import Method
from vcpo_bench.naming.parameters import choice, integer, text
from vcpo_bench.records.settings import CellFields

TESTED = "1.16"
"""The release of TRL whose gradients, checkpoints and lags are tested."""
SCRIPT = "vcpo_bench.adapters.trl.cell.train"


@dataclass(frozen=True, kw_only=True)
class Trl(OutsideTrainer):
    """TRL's `GRPOTrainer` with the method in place of its loss, and the lag by delayed consumption (`adapters.trl`).

    Attributes:
        processes: Processes that train one cell together; more than one are started by `accelerate launch`.
        accelerate: File of `accelerate config`, for FSDP, DeepSpeed or several machines; it names the processes.
        vllm: Where TRL's vLLM draws the responses; `off`: `generate` of transformers does.
    """

    name = "trl"
    summary = "TRL's GRPOTrainer, through accelerate for several processes; text tasks, regime fifo"
    processes: int = integer(1, minimum=1)
    accelerate: str = text("", legal="a file of accelerate config")
    vllm: str = choice("off", "colocate", "server")

    @property
    def ranks(self) -> int:
        """The processes."""
        if not self.accelerate:
            return self.processes
        count = self._accelerate_config().get("num_processes", 1)
        if not isinstance(count, int) or count < 1:
            raise UsageError(f"--trainer {self.text()}: num_processes of {self.accelerate} is no whole number")
        return count

    @property
    def sharded(self) -> bool:
        """Whether the weights are split among the processes."""
        kind = str(self._accelerate_config().get("distributed_type", "")) if self.accelerate else ""
        return kind.upper() in ("FSDP", "DEEPSPEED", "MEGATRON_LM")

    def _accelerate_config(self) -> dict[str, object]:
        path = Path(self.accelerate)
        if not path.is_file():
            raise UsageError(f"--trainer {self.text()}: there is no file {path}; make one with accelerate config")
        found = read_yaml(path.read_text())
        if not isinstance(found, dict):
            raise UsageError(f"--trainer {self.text()}: {path} is no file of accelerate config")
        return found

    def refuse(self, config: CellFields, method: Method, task: NamedTask) -> None:
        """See `CellTrainer.refuse`."""
        for reason in self._reasons(config, method, task):
            raise UsageError(f"--trainer {self.name}: {reason}")

    def _reasons(self, config: CellFields, method: Method, task: NamedTask) -> Iterator[str]:
        from vcpo_bench.adapters.trl.refusals import without_trainer

        if not config.model:
            yield "it trains language models; name one with --model"
        if task.in_turns:
            yield f"{config.task} is a conversation, and TRL's cells have one turn; choose another --task"
        if config.regime not in ("fifo", "fifo(fill=hold)"):
            yield f"it makes the lag by delayed consumption; drop --regime {config.regime}"
        if config.optimizer.partition("(")[0] != "adamw" or "reset" in config.optimizer:
            yield f"it steps with AdamW; drop --optimizer {config.optimizer}"
        if config.sampler != CellFields.sampler:
            yield f"TRL draws the responses; for its vLLM write trl(vllm=colocate), and drop --sampler {config.sampler}"
        if config.responses < 2:
            yield "TRL asks for two or more --responses to a prompt"
        if config.prompts * config.responses % self.ranks:
            yield f"{config.prompts} x {config.responses} responses do not divide among {self.ranks} processes"
        yield from (f"{method.canonical}: {why}" for why in without_trainer(method, self.sharded))

    def check_installed(self) -> None:
        """See `CellTrainer.check_installed`."""
        try:
            version = metadata.version("trl")
        except metadata.PackageNotFoundError:
            raise UsageError(f"--trainer {self.name}: TRL is not installed; {how_to_install('trl')}") from None
        if not re.match(rf"{re.escape(TESTED)}(\.|$)", version):
            raise UsageError(f"--trainer {self.name}: TRL {version} was not tested; install trl~={TESTED}.0")
        if self.vllm != "off" and find_spec("vllm") is None:
            raise UsageError(f"--trainer {self.text()}: vLLM is not installed; {how_to_install('vllm')}")

    def command(self, job: Path) -> list[str]:
        """See `OutsideTrainer.command`. Port 0 is any free one, so that several cells share a machine."""
        if self.accelerate:
            shape = ["--config_file", self.accelerate]
        elif self.processes > 1:
            shape = ["--multi_gpu", "--num_processes", str(self.processes), "--num_machines", "1"]
            shape += ["--mixed_precision", "no", "--dynamo_backend", "no"]
        else:
            return [sys.executable, "-m", SCRIPT, str(job)]
        launch = [sys.executable, "-m", "accelerate.commands.launch", *shape, "--main_process_port", "0"]
        return [*launch, "-m", SCRIPT, str(job)]
