"""The options of `vcpo-bench run`: one type per flag, with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.configuration import read_config
from vcpo_bench.commands.support.options import EXECUTION, LANGUAGE_MODEL

GRID = "Grid (every LIST is comma-separated and adds an axis)"
SWITCHES = "Switches"

Methods = Annotated[
    str,
    typer.Option(
        metavar="LIST",
        help="Methods with parameters and parts, such as clip(high=0.28) or vespo+opob; all means every method.",
        rich_help_panel=GRID,
    ),
]
Staleness = Annotated[
    str,
    typer.Option(
        metavar="LIST",
        help="Policy lags, in optimizer updates; 1-16 is every lag from 1 to 16, 1..64/7 seven at equal ratios.",
        rich_help_panel=GRID,
    ),
]
Seeds = Annotated[
    str,
    typer.Option(
        metavar="LIST",
        help="Number of seeds, such as 3, or a list of them, such as 0,1,2 or 3-7.",
        rich_help_panel=GRID,
    ),
]
Tasks = Annotated[
    str, typer.Option(metavar="LIST", help="Tasks; vcpo-bench ls tasks lists them.", rich_help_panel=GRID)
]
Regimes = Annotated[
    str,
    typer.Option(
        metavar="LIST",
        help="Staleness regimes: how the lag arises. vcpo-bench ls regimes lists them.",
        rich_help_panel=GRID,
    ),
]
LearningRates = Annotated[
    str,
    typer.Option(metavar="LIST", help="Learning rates; 1e-4..1e-3/5 is five at equal ratios.", rich_help_panel=GRID),
]
Optimizer = Annotated[
    str,
    typer.Option(
        metavar="EXPR",
        help="Optimizer, such as adamw(beta2=0.98) or muon; vcpo-bench ls optimizers lists them.",
        rich_help_panel=GRID,
    ),
]
Policy = Annotated[
    str,
    typer.Option(
        metavar="EXPR",
        help="Built-in policy: tiny, or moe, a mixture of experts; vcpo-bench ls policies lists them.",
        rich_help_panel=GRID,
    ),
]
Replay = Annotated[
    str,
    typer.Option(
        metavar="WAY",
        help="Routes a mixture of experts replays when it learns: off, r2 (the learner's at sampling) or r3 (the "
        "sampler's).",
        rich_help_panel=GRID,
    ),
]
WeightDecay = Annotated[float, typer.Option(metavar="X", help="Decoupled weight decay.", rich_help_panel=GRID)]
LrWarmup = Annotated[
    int, typer.Option(metavar="N", help="Updates of linear learning-rate warmup.", rich_help_panel=GRID)
]
Steps = Annotated[int, typer.Option(metavar="N", help="Optimizer updates per cell.", rich_help_panel=GRID)]
Prompts = Annotated[int, typer.Option(metavar="N", help="Prompts per update.", rich_help_panel=GRID)]
Responses = Annotated[int, typer.Option(metavar="N", help="Responses per prompt.", rich_help_panel=GRID)]
Record = Annotated[
    str,
    typer.Option(
        metavar="LEVEL",
        help="How much to record: basic (per update), diagnostics (also per trajectory) or full (also per token).",
        rich_help_panel=GRID,
    ),
]
Start = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Start policy written by vcpo-bench warmup.",
        show_default="the one that ships with the task",
        rich_help_panel=GRID,
    ),
]
Model = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Language model to train: a local folder or a Hugging Face name. The tasks must be text tasks.",
        show_default="the built-in tiny policy",
        rich_help_panel=LANGUAGE_MODEL,
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        metavar="TYPE",
        help="Precision of forward and backward passes: float32 or bfloat16.",
        rich_help_panel=LANGUAGE_MODEL,
    ),
]
LoraRank = Annotated[
    int,
    typer.Option(metavar="N", help="Rank of the LoRA adapters; 0 trains all weights.", rich_help_panel=LANGUAGE_MODEL),
]
Learner = Annotated[
    str,
    typer.Option(
        metavar="EXPR",
        help="Learner: torch, or a server such as tinker(rank=32) with --url; vcpo-bench ls learners lists them.",
        rich_help_panel=LANGUAGE_MODEL,
    ),
]
Sampler = Annotated[
    str,
    typer.Option(
        metavar="EXPR",
        help="Sampler, such as torch(slots=64) or vllm; vcpo-bench ls samplers lists them.",
        rich_help_panel=LANGUAGE_MODEL,
    ),
]
ServerUrl = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="URL of the server, for --sampler vllm-server or --learner tinker.",
        envvar="VCPO_BENCH_VLLM_URL",
        rich_help_panel=LANGUAGE_MODEL,
    ),
]
MaxResponse = Annotated[
    int,
    typer.Option(
        metavar="N", help="Longest response, in tokens; 0 means the task's limit.", rich_help_panel=LANGUAGE_MODEL
    ),
]
MicroTokens = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Most tokens in one forward and backward pass, padding included; 0 means no limit.",
        rich_help_panel=LANGUAGE_MODEL,
    ),
]
ActivationCheckpointing = Annotated[
    bool,
    typer.Option(metavar="", help="Activation checkpointing: less memory, slower updates.", rich_help_panel=SWITCHES),
]
ShardCount = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="GPUs that train one cell together, its weights spread over them by FSDP2.",
        rich_help_panel=LANGUAGE_MODEL,
    ),
]
ChatTemplate = Annotated[
    bool,
    typer.Option(metavar="", help="Use the tokenizer's chat template, if it has one.", rich_help_panel=SWITCHES),
]
Controls = Annotated[
    bool,
    typer.Option(
        metavar="",
        help="Add the controls: reinforce at every lag, and a synchronous run per seed.",
        rich_help_panel=SWITCHES,
    ),
]
StopOnAlarm = Annotated[
    bool,
    typer.Option(
        "--stop-on-alarm",
        metavar="",
        help="Stop a cell when a calibrated detector predicts its collapse.",
        rich_help_panel=SWITCHES,
    ),
]
StopDetector = Annotated[
    str,
    typer.Option(
        metavar="EXPR",
        help="Stop on this detector, such as ess(window=5,threshold=1.2).",
        show_default="with --stop-on-alarm, the best one for what is recorded",
        rich_help_panel=GRID,
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        metavar="DIR", help="Results folder. Cells that have ended there are kept.", rich_help_panel=EXECUTION
    ),
]
Device = Annotated[
    str,
    typer.Option(metavar="NAME", help="Device: cpu, cuda (every GPU) or cuda:N (one GPU).", rich_help_panel=EXECUTION),
]
LauncherName = Annotated[
    str,
    typer.Option(
        metavar="EXPR",
        help="Where cells run: local, slurm or ray, with parameters such as slurm(partition=gpu,minutes=120).",
        rich_help_panel=EXECUTION,
    ),
]
LauncherConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="YAML file with parameters of the launcher, one per line.", rich_help_panel=EXECUTION
    ),
]
Detach = Annotated[
    bool,
    typer.Option(
        "--detach",
        metavar="",
        help="Submit the cells and return; the same command without it shows their progress.",
        rich_help_panel=EXECUTION,
    ),
]
Stack = Annotated[
    str,
    typer.Option(
        metavar="N",
        help="Cells trained as one stack: auto (on a GPU), off, or a number. Results do not depend on it.",
        rich_help_panel=EXECUTION,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        metavar="",
        help="Print the cells and an estimate of the time; train nothing.",
        rich_help_panel=EXECUTION,
    ),
]
KeepCheckpoints = Annotated[
    str,
    typer.Option(
        metavar="every=N",
        help="Keep a checkpoint every N updates.",
        show_default="none once a cell has ended",
        rich_help_panel=EXECUTION,
    ),
]
ReportTo = Annotated[
    str,
    typer.Option(
        metavar="LIST",
        help="Mirror to these trackers: tensorboard, trackio, wandb, with parameters such as wandb(mode=online).",
        show_default="none",
        rich_help_panel=EXECUTION,
    ),
]
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
AsJson = Annotated[
    bool, typer.Option("--json", metavar="", help="Print the scoreboard as JSON.", rich_help_panel=EXECUTION)
]
