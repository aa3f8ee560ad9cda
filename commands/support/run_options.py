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
        typer.Option(
            metavar="LIST",
            help="Methods with parameters and parts, such as clip(high=0.28) or vespo+opob; all means every method.",
            rich_help_panel=GRID,
        ),
    ] = "vcpo,clip,vespo"
    staleness: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Policy lags, in optimizer updates; 1-16 is every lag from 1 to 16, 1..64/7 seven at equal ratios.",
            rich_help_panel=GRID,
        ),
    ] = "1,16,128"
    seeds: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Number of seeds, such as 3, or a list of them, such as 0,1,2 or 3-7.",
            rich_help_panel=GRID,
        ),
    ] = "3"
    task: Annotated[
        str, typer.Option(metavar="LIST", help="Tasks; vcpo-bench ls tasks lists them.", rich_help_panel=GRID)
    ] = CellFields.task
    regime: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Staleness regimes: how the lag arises. vcpo-bench ls regimes lists them.",
            rich_help_panel=GRID,
        ),
    ] = CellFields.regime
    lr: Annotated[
        str,
        typer.Option(
            metavar="LIST", help="Learning rates; 1e-4..1e-3/5 is five at equal ratios.", rich_help_panel=GRID
        ),
    ] = "3e-4"
    start: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Start policy written by vcpo-bench warmup.",
            show_default="the one that ships with the task",
            rich_help_panel=GRID,
        ),
    ] = None
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Language model to train: a local folder or a Hugging Face name. The tasks must be text tasks.",
            show_default="the built-in tiny policy",
            rich_help_panel=LANGUAGE_MODEL,
        ),
    ] = ""
    controls: Annotated[
        bool,
        typer.Option(
            metavar="",
            help="Add the controls: reinforce at every lag, and a synchronous run per seed.",
            rich_help_panel=SWITCHES,
        ),
    ] = True
    device: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Device: cpu, cuda (every GPU) or cuda:N (one GPU).", rich_help_panel=EXECUTION
        ),
    ] = CellFields.device

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
        bool,
        typer.Option(
            "--stop-on-alarm",
            metavar="",
            help="Stop a cell when a calibrated detector predicts its collapse.",
            rich_help_panel=SWITCHES,
        ),
    ] = False
    detector: Annotated[
        str,
        typer.Option(
            metavar="EXPR",
            help="Stop on this detector, such as ess(window=5,threshold=1.2).",
            show_default="with --stop-on-alarm, the best one for what is recorded",
            rich_help_panel=GRID,
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

    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Results folder. Cells that have ended there are kept.", rich_help_panel=EXECUTION
        ),
    ] = DEFAULT_OUT
    jobs: Jobs = 0
    launcher: Annotated[
        str,
        typer.Option(
            metavar="EXPR",
            help="Where cells run: local, slurm or ray, with parameters such as slurm(partition=gpu,minutes=120).",
            rich_help_panel=EXECUTION,
        ),
    ] = "local"
    launcher_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="YAML file with parameters of the launcher, one per line.", rich_help_panel=EXECUTION
        ),
    ] = None
    detach: Annotated[
        bool,
        typer.Option(
            "--detach",
            metavar="",
            help="Submit the cells and return; the same command without it shows their progress.",
            rich_help_panel=EXECUTION,
        ),
    ] = False
    stack: Annotated[
        str,
        typer.Option(
            metavar="N",
            help="Cells trained as one stack: auto (on a GPU), off, or a number. Results do not depend on it.",
            rich_help_panel=EXECUTION,
        ),
    ] = "auto"
    url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="URL of the server, for --sampler vllm-server or --learner tinker.",
            envvar="VCPO_BENCH_VLLM_URL",
            rich_help_panel=LANGUAGE_MODEL,
        ),
    ] = ""
    plugin: Plugins = None
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            metavar="",
            help="Print the cells and an estimate of the time; train nothing.",
            rich_help_panel=EXECUTION,
        ),
    ] = False
    wait: Wait = False
    keep_checkpoints: Annotated[
        str,
        typer.Option(
            metavar="every=N",
            help="Keep a checkpoint every N updates.",
            show_default="none once a cell has ended",
            rich_help_panel=EXECUTION,
        ),
    ] = ""
    report_to: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Mirror to these trackers: tensorboard, trackio, wandb, with parameters such as wandb(mode=online).",
            show_default="none",
            rich_help_panel=EXECUTION,
        ),
    ] = ""
    quiet: Quiet = False
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print the scoreboard as JSON.", rich_help_panel=EXECUTION)
    ] = False


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
