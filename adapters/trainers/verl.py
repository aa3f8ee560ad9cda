"""verl: a cell is a run of verl's V1 trainer, here or on a Ray cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vcpo_bench.adapters.trainers.framework import FrameworkTrainer
from vcpo_bench.bench.cells.config import plugins_of
from vcpo_bench.bench.trainers.job import TrainerJob
from vcpo_bench.methods import Method
from vcpo_bench.naming.parameters import choice, integer, text
from vcpo_bench.records.settings import CellFields

SCRIPT = "vcpo_bench.adapters.verl.cell.train"


@dataclass(frozen=True, kw_only=True)
class Verl(FrameworkTrainer):
    """verl's V1 trainer with the method, on FSDP2 and vLLM (`adapters.verl`).

    Attributes:
        gpus: GPUs that train, all of one node; without a lag, and where the lag is not `separate`, they sample, too.
        lag: How data get old. `separate`: fully asynchronous, GPUs of their own sample, and data are at most as old as
            asked for. `colocate`: the same GPUs do both in turn. `exact`: as old as asked for, always.
        rollout_gpus: GPUs that sample, for `lag=separate`.
        address: Ray cluster to submit to, such as `http://head:8265`; empty: verl runs here.
    """

    name, framework, tested = "verl", "verl", "0.9.1"
    summary = "verl's V1 trainer on FSDP2 and vLLM, here or as a Ray job; text tasks, lags that verl bounds or exact"
    gpus: int = integer(1, minimum=1)
    lag: str = choice("separate", "colocate", "exact")
    rollout_gpus: int = integer(1, minimum=1)
    address: str = text("", legal="the URL of a Ray dashboard")

    @property
    def ranks(self) -> int:
        """The GPUs."""
        return self.gpus + (self.rollout_gpus if self.lag == "separate" else 0)

    @property
    def elsewhere(self) -> bool:
        """Whether there is a cluster to submit to."""
        return bool(self.address)

    @property
    def sharded(self) -> bool:
        """See `FrameworkTrainer.sharded`."""
        return True

    def reasons(self, config: CellFields, method: Method) -> Iterator[str]:
        """See `FrameworkTrainer.reasons`."""
        if config.device == "cpu":
            yield "verl samples with vLLM on GPUs; add --device cuda"
        if config.lora:
            yield "its adapters were not compared with ours; drop --lora"
        if config.record != "basic":
            yield f"verl's log holds no trajectories; drop --record {config.record}"
        if config.stop:
            yield "verl trains to its end; drop --stop-on-alarm"
        if config.prompts * config.responses % self.gpus:
            yield f"{config.prompts} x {config.responses} responses do not divide among {self.gpus} GPUs"
        if plugins_of(config):  # type: ignore[arg-type]
            yield "plug-in files do not reach verl's processes; choose what ships, or --trainer own"
        if self.lag == "separate" and config.staleness:
            yield from self._of_a_policy_loss(method)

    def _of_a_policy_loss(self, method: Method) -> Iterator[str]:
        from vcpo_bench.adapters.hook_reasons import reasons_against
        from vcpo_bench.adapters.verl.policy_loss import HOOK

        advice = "verl(lag=colocate) and verl(lag=exact) carry it"
        yield from (f"{method.canonical}: {why} ({advice})" for why in reasons_against(method, HOOK))
        if method.parts.baseline.name != "grpo":
            yield f"{method.canonical}: its advantage is not verl's grpo ({advice})"

    def command(self, job: Path) -> list[str]:
        """See `OutsideTrainer.command`."""
        return [sys.executable, "-m", SCRIPT, str(job)]

    def configuration(self, job: TrainerJob, folder: Path) -> list[str]:
        """See `OutsideTrainer.configuration`."""
        from vcpo_bench.adapters.verl.cell.processes import ENTRY
        from vcpo_bench.adapters.verl.cell.train import arguments

        return [" ".join(("python", *ENTRY)), *arguments(job, folder)]
