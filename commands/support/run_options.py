"""The options of `vcpo-bench run` beside the settings of a cell (`records.settings`), in groups."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vcpo_bench.commands.support.configuration import read_config
from vcpo_bench.commands.support.options import (
    DEFAULT_OUT,
    EXECUTION,
    GRID,
    LANGUAGE_MODEL,
    SWITCHES,
    Jobs,
    Plugins,
    Quiet,
    Wait,
    option,
)
from vcpo_bench.records.settings import CellFields, CellSettings

if TYPE_CHECKING:
    from vcpo_bench.analysis.monitoring.calibration import Calibration
    from vcpo_bench.bench.cells.grid_spec import GridSpec
    from vcpo_bench.records import Level


@dataclass(frozen=True)
class GridOptions:
    """The axes of a grid as they are typed, and what all its cells start from."""

    methods: Annotated[
        str,
        option(
            GRID,
            "LIST",
            "Methods with parameters and parts, such as clip(high=0.28) or vespo+opob; all means every method.",
        ),
    ] = "vcpo,clip,vespo"
    staleness: Annotated[
        str,
        option(
            GRID,
            "LIST",
            "Policy lags, in optimizer updates; 1-16 is every lag from 1 to 16, 1..64/7 seven at equal ratios.",
        ),
    ] = "1,16,128"
    seeds: Annotated[
        str, option(GRID, "LIST", "Number of seeds, such as 3, or a list of them, such as 0,1,2 or 3-7.")
    ] = "6"
    task: Annotated[str, option(GRID, "LIST", "Tasks; vcpo-bench ls tasks lists them.")] = CellFields.task
    regime: Annotated[
        str, option(GRID, "LIST", "Staleness regimes: how the lag arises. vcpo-bench ls regimes lists them.")
    ] = CellFields.regime
    lr: Annotated[str, option(GRID, "LIST", "Learning rates; 1e-4..1e-3/5 is five at equal ratios.")] = "3e-4"
    start: Annotated[
        Path | None,
        option(
            GRID,
            "FILE",
            "Start policy written by vcpo-bench lab warmup.",
            show_default="the one that ships with the task",
        ),
    ] = None
    model: Annotated[
        str,
        option(
            LANGUAGE_MODEL,
            "NAME",
            "Language model to train: smollm2, gemma3-270m, a folder, a GGUF file or a Hugging Face name.",
            show_default="the built-in tiny policy",
        ),
    ] = ""
    controls: Annotated[
        bool, option(SWITCHES, "", "Add the controls: reinforce at every lag, and a synchronous run per seed.")
    ] = True
    device: Annotated[str, option(EXECUTION, "NAME", "Device: cpu, cuda (every GPU) or cuda:N (one GPU).")] = (
        CellFields.device
    )

    def spec(self, settings: CellSettings) -> GridSpec:
        """The grid of these options.

        Raises:
            UsageError: A list cannot be read.
        """
        from vcpo_bench.bench.cells import flag_values
        from vcpo_bench.bench.cells.grid_spec import GridSpec

        return GridSpec(
            methods=flag_values.expressions(self.methods),
            staleness=flag_values.lags(self.staleness),
            seeds=flag_values.seeds(self.seeds),
            tasks=flag_values.expressions(self.task),
            lrs=flag_values.rates(self.lr),
            regimes=flag_values.expressions(self.regime),
            settings=settings,
            controls=self.controls,
            start=self.start,
            model=self.model,
            device=self.device,
        )


@dataclass(frozen=True)
class StopOptions:
    """Which detector ends a cell early."""

    stop_on_alarm: Annotated[
        bool, option(SWITCHES, "", "Stop a cell when a calibrated detector predicts its collapse.", "--stop-on-alarm")
    ] = False
    detector: Annotated[
        str,
        option(
            GRID,
            "EXPR",
            "Stop on this detector, such as ess(window=5,threshold=1.2).",
            show_default="with --stop-on-alarm, the best one for what is recorded",
        ),
    ] = ""

    def alarm(self, level: Level) -> Calibration | None:
        """The detector of these options, with what is known of its errors; None: nothing ends a cell early.

        Raises:
            UsageError: There is no such detector, or the record level does not write what it needs.
        """
        from vcpo_bench.analysis.monitoring.stop_on_alarm import stop_detector

        return stop_detector(self.detector, level) if self.stop_on_alarm or self.detector else None


@dataclass(frozen=True)
class ExecutionOptions:
    """Where and how cells run; no option changes results."""

    out: Annotated[Path, option(EXECUTION, "DIR", "Results folder. Cells that have ended there are kept.")] = (
        DEFAULT_OUT
    )
    jobs: Jobs = 0
    launcher: Annotated[
        str,
        option(
            EXECUTION,
            "EXPR",
            "Where cells run: local, slurm or ray, with parameters such as slurm(partition=gpu,minutes=120).",
        ),
    ] = "local"
    launcher_config: Annotated[
        Path | None, option(EXECUTION, "FILE", "YAML file with parameters of the launcher, one per line.")
    ] = None
    detach: Annotated[
        bool,
        option(
            EXECUTION, "", "Submit the cells and return; the same command without it shows their progress.", "--detach"
        ),
    ] = False
    stack: Annotated[
        str,
        option(
            EXECUTION,
            "N",
            "Most cells trained as one stack: auto, off, or a number. Results do not depend on it.",
        ),
    ] = "auto"
    url: Annotated[
        str,
        option(
            LANGUAGE_MODEL,
            "URL",
            "URL of the server, for --sampler vllm-server.",
            envvar="VCPO_BENCH_VLLM_URL",
        ),
    ] = ""
    offline: Annotated[
        bool, option(LANGUAGE_MODEL, "", "Download nothing: the model must be on this machine.", "--offline")
    ] = False
    plugin: Plugins = None
    dry_run: Annotated[
        bool, option(EXECUTION, "", "Say how many cells there are and how long they take; train nothing.", "--dry-run")
    ] = False
    export: Annotated[
        Path | None,
        option(EXECUTION, "DIR", "Write the grid and its scripts for a cluster; train nothing.", show_default="none"),
    ] = None
    cells: Annotated[bool, option(EXECUTION, "", "With --dry-run: list the cells too.", "--cells")] = False
    wait: Wait = False
    keep_checkpoints: Annotated[
        str,
        option(EXECUTION, "every=N", "Keep a checkpoint every N updates.", show_default="none once a cell has ended"),
    ] = ""
    report_to: Annotated[
        str,
        option(
            EXECUTION,
            "LIST",
            "Mirror to trackers: tensorboard, mlflow, trackio, wandb, with parameters such as wandb(mode=online).",
            show_default="none",
        ),
    ] = ""
    quiet: Quiet = False
    as_json: Annotated[bool, option(EXECUTION, "", "Print the scoreboard as JSON.", "--json")] = False


Config = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Preset (vcpo-bench ls presets) or YAML file whose keys are these flags. A flag you type wins.",
        callback=read_config,
        is_eager=True,
    ),
]
SaveConfig = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write these settings to a YAML file for --config.")
]
