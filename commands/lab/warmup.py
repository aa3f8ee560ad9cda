"""`vcpo-bench lab warmup`: a start policy, by imitation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import LANGUAGE_MODEL, Plugins, load_plugins
from vcpo_bench.commands.support.outputs import check_folder
from vcpo_bench.commands.support.say import say, say_aside
from vcpo_bench.commands.support.verb import Verb
from vcpo_bench.errors import UsageError
from vcpo_bench.records.settings import CellSettings


def warmup(
    task: Annotated[str, typer.Option(metavar="EXPR", help="Task to learn, such as chain(n=8).")],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="File to write; for a language model, a folder.",
            show_default="TASK.safetensors, or the folder warm-model",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=2**63 - 1, help="Seed for the initial weights and the demonstrations."),
    ] = 0,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Language model to start from: a local folder or a Hugging Face name.",
            rich_help_panel=LANGUAGE_MODEL,
        ),
    ] = "",
    create: Annotated[
        str,
        typer.Option(
            "--new",
            metavar="SPEC",
            help="Create a new, randomly initialized model instead, such as llama(1M).",
            rich_help_panel=LANGUAGE_MODEL,
        ),
    ] = "",
    target: Annotated[
        float,
        typer.Option(
            metavar="X", help="Mean sampled reward, 0 to 1, at which training stops.", rich_help_panel=LANGUAGE_MODEL
        ),
    ] = 0.32,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="Device: cpu, cuda or cuda:N.", rich_help_panel=LANGUAGE_MODEL)
    ] = "cpu",
    plugin: Plugins = None,
    *,
    settings: Annotated[CellSettings, "policy"],
) -> None:
    """Train a start policy for a task on demonstrations.

    Supervised training stops when about a third of the sampled answers are right, so that reinforcement learning has
    something to improve. Pass the file to vcpo-bench run with --start, or the folder with --model.
    """
    check_folder("--out", out if model or create else out and out.parent)
    if out is not None and out.is_dir() and not (model or create):
        raise UsageError(f"--out {out}: is a folder; give the name of a file")
    load_plugins(plugin)
    if model or create:
        if settings.policy != CellSettings.policy:
            raise UsageError(
                f"--policy {settings.policy}: a built-in policy, and --model or --new names another; drop one"
            )
        _warm_up_model(task, out or Path("warm-model"), model, create, seed, target, device)
        return
    from vcpo_bench.bench.cells.parts import SharedParts
    from vcpo_bench.bench.tasks import token_task

    _ = token_task(task), SharedParts(settings).policy  # refused before torch is imported
    from vcpo_bench.bench.training.imitation import warmup_command

    start, path = warmup_command(task, out, seed, settings.policy)
    reward = f"sampled reward {start.reward:.2f}, greedy {start.greedy:.2f}"
    say(f"{path}: {start.task}, {reward} after {start.steps} supervised updates")


def _warm_up_model(task: str, out: Path, model: str, create: str, seed: int, target: float, device: str) -> None:
    from vcpo_bench.bench.policies.hf.packages import hf_packages

    with hf_packages():
        from vcpo_bench.bench.training.imitation_hf import warm_up_model

    def tell(step: int, reward: float) -> None:
        say_aside(f"{step} supervised updates, sampled reward {reward:.2f}")

    warmed = warm_up_model(task, out, model, create, seed, target, device, tell)
    say(
        f"{out}: {warmed.task}, {warmed.parameters:,} parameters, sampled reward {warmed.reward:.2f} after "
        f"{warmed.steps} supervised updates"
    )


VERB = Verb(
    warmup,
    examples=(
        'vcpo-bench lab warmup --task "chain(n=8)" --out chain8.safetensors',
        'vcpo-bench lab warmup --task arithmetic --new "llama(1M)" --out model',
    ),
)
