"""The command that makes start policies. Wiring only, as in `cli`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Language = "Language models (extra: hf)"


def warmup(
    task: Annotated[str, typer.Option(help="Task expression, such as chain(n=8).")],
    out: Annotated[
        Path | None, typer.Option(help="File to write (default: TASK.safetensors here); a language model's folder.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and demonstrations.")] = 0,
    model: Annotated[str, typer.Option(help="Folder or hub name to begin with.", rich_help_panel=Language)] = "",
    create: Annotated[str, typer.Option("--new", help="Or a new one: llama(1M).", rich_help_panel=Language)] = "",
    target: Annotated[float, typer.Option(help="Sampled reward to stop at.", rich_help_panel=Language)] = 0.32,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.", rich_help_panel=Language)] = "cpu",
) -> None:
    """Train a start policy for a task on demonstrations, to about a third of the answers right."""
    if model or create:
        from vcpo_bench.bench.policies.hf.packages import hf_packages

        with hf_packages():
            from vcpo_bench.bench.training.imitation_hf import warm_up_model

        def tell(step: int, reward: float) -> None:
            typer.echo(f"{step} supervised updates, sampled reward {reward:.2f}", err=True)

        folder = out or Path("warm-model")
        warmed = warm_up_model(task, folder, model, create, seed, target, device, tell)
        typer.echo(
            f"{folder}: {warmed.task}, {warmed.parameters:,} parameters, sampled reward {warmed.reward:.2f} after "
            f"{warmed.steps} supervised updates"
        )
        return
    from vcpo_bench.bench.training.imitation import warmup_command

    start, path = warmup_command(task, out, seed)
    typer.echo(f"{path}: {start.task}, sampled reward {start.reward:.2f} after {start.steps} supervised updates")
