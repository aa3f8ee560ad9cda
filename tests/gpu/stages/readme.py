"""Stage 2: the command of the README on SmolLM2: three methods and reinforce at three lags, and one synchronous run."""

from __future__ import annotations

from pathlib import Path

import parts
from kit import Result, Setup, Unfinished
from verbs import call, run_grid

from stages.language import MARK, cell_table

TASK = "running-sums"


def train(setup: Setup) -> Result:
    """13 cells of 200 updates, 16 x 8 responses of at most 64 tokens, drawn with graphs; cells that have ended stay."""
    start = setup.work / "readme-start"
    if not (start / MARK).exists():
        model = ("--model", _weights(setup)) if not setup.tiny else ("--new", "llama(10k)")
        target = setup.pick(0.1, 0.0)
        where = ("--target", target, "--out", start, "--device", setup.device)
        call(setup, "lab", "warmup", *model, "--task", setup.pick(TASK, "arithmetic(terms=2,largest=1)"), *where)
    flags = setup.pick(
        ("--task", TASK, "--steps", 200, "--prompts", 16, "--responses", 8, "--max-response", 64, "--lr", "1e-5"),
        ("--task", "arithmetic(terms=2,largest=1)", "--steps", 3, "--prompts", 2, "--responses", 2, "--lr", "1e-4"),
    )
    grid = ("--methods", setup.pick("vcpo,clip,vespo", "clip"), "--staleness", setup.pick("1,16,128", "1"))
    more = ("--seeds", 1, "--controls", "--model", start, "--sampler", "graph", "--dtype", "bfloat16")
    jobs = ("--jobs", setup.pick(4, 1), "--eval-prompts", setup.pick(64, 4), "--device", setup.device)
    return run_grid(setup, setup.work / "studies" / "readme", cell_table, *grid, *more, *flags, *jobs)


def _weights(setup: Setup) -> Path:
    """The GGUF file of SmolLM2, of the parts that were carried here.

    Raises:
        Unfinished: Not all of them are here yet.
    """
    found = parts.model(setup.work)
    if found is None:
        raise Unfinished("the weights are not here: carry every part of results/gpu-carried/model first")
    return found
