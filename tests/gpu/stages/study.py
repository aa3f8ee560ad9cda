"""Stages 7 and 9: the grids that a study's design registers, cell by cell; every call continues them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import start
import yaml
from kit import Result, Setup, Unfinished
from verbs import call, run_grid

from stages.cells import cell_table
from stages.readme import EASY, MARK, small_model, weights

STUDIES = Path(__file__).parents[3] / "studies"
AT_ONCE = 3
"""Cells at once. Five made 0.9 and 1.3 times the updates of three on an H200, and all are lost where a call is cut."""
PASS = 8192
"""Positions of a pass. Not chosen by free memory, since cells of a smaller GPU would be others."""


def train(setup: Setup, study: str, grid: str, makes: bool) -> Result:
    """One of the design's presets, drawn with graphs, from the start that was carried, or that it `makes`."""
    preset: dict[str, Any] = yaml.safe_load((STUDIES / study / "design.yaml").read_text())["preset"][grid]
    model = small_model(setup) if setup.tiny else _start(setup, study, preset["model"], preset["task"], makes)
    file = setup.work / f"{study}-{grid}.yaml"
    file.write_text(yaml.safe_dump(preset))
    tiny = ("--task", EASY, "--steps", 2, "--prompts", 2, "--responses", 2, "--eval-prompts", 4, "--methods", "clip")
    less = setup.pick((), (*tiny, "--seeds", "1", "--lr", "1e-4", "--staleness", "1"))
    where = ("--device", setup.device, "--jobs", setup.pick(AT_ONCE, 1), "--sampler", "graph", "--micro-tokens", PASS)
    results = setup.work / "studies" / f"{study}-{grid}"
    return run_grid(setup, results, cell_table, "--config", file, "--model", model, *where, *less)


def _start(setup: Setup, study: str, name: str, task: str, makes: bool) -> Path:
    """The start model, from its packed form, in which it travels.

    Raises:
        Unfinished: Neither that nor the released weights that it is made of are here yet; or cells have begun from one.
    """
    packed = setup.work / f"{name}.start"
    if not packed.exists():
        begun = any(setup.work.glob(f"studies/{study}-*/cells/*"))
        if begun or not makes or (setup.work / "parts" / packed.name).exists():
            raise Unfinished(f"{packed.name} is not here: carry every part of it, since another start has other cells")
        warmed = setup.work / "warmed" / name
        if not (warmed / MARK).exists():
            where = ("--out", warmed, "--device", setup.device)
            call(setup, "lab", "warmup", "--model", weights(setup), "--task", task, *where)
        start.pack(warmed).rename(packed)
    return start.unpack(packed, setup.work / name)
