"""trl: a cell is a run of TRL's `GRPOTrainer`, in processes of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vcpo_bench.adapters.trainers.framework import FrameworkTrainer
from vcpo_bench.errors import UsageError, how_to_install
from vcpo_bench.files.plain_yaml import read_settings_file
from vcpo_bench.methods import Method
from vcpo_bench.naming.parameters import choice, integer, text
from vcpo_bench.records.settings import CellFields

SCRIPT = "vcpo_bench.adapters.trl.cell.train"


@dataclass(frozen=True, kw_only=True)
class Trl(FrameworkTrainer):
    """TRL's `GRPOTrainer` with the method in place of its loss, and the lag by delayed consumption (`adapters.trl`).

    Attributes:
        processes: Processes that train one cell together; more than one are started by `accelerate launch`.
        accelerate: File of `accelerate config`, for FSDP, DeepSpeed or several machines; it names the processes.
        vllm: Where TRL's vLLM draws the responses; `off`: `generate` of transformers does.
    """

    name, framework, tested = "trl", "TRL", "1.16"
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
        """See `FrameworkTrainer.sharded`."""
        kind = str(self._accelerate_config().get("distributed_type", "")) if self.accelerate else ""
        return kind.upper() in ("FSDP", "DEEPSPEED", "MEGATRON_LM")

    def _accelerate_config(self) -> dict[Any, Any]:
        path = Path(self.accelerate)
        if not path.is_file():
            raise UsageError(f"--trainer {self.text()}: there is no file {path}; make one with accelerate config")
        return read_settings_file(path, f"--trainer {self.text()}", "num_processes: 2")

    def reasons(self, config: CellFields, method: Method) -> Iterator[str]:
        """See `FrameworkTrainer.reasons`."""
        from vcpo_bench.adapters.locality import PROXY

        if self.sharded and "score_norm_sq" in method.needs:
            yield f"{method.canonical}: score norms need whole weights, and these are sharded: {PROXY}"
        if config.responses < 2:
            yield "TRL asks for two or more --responses to a prompt"
        if config.prompts * config.responses % self.ranks:
            yield f"{config.prompts} x {config.responses} responses do not divide among {self.ranks} processes"

    def check_installed(self) -> None:
        """See `CellTrainer.check_installed`."""
        super().check_installed()
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
