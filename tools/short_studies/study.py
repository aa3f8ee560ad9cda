"""What a study of short runs is: its cells, the tables that follow from its runs, and the sentences of its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.settings import CellSettings

Tables = dict[str, pd.DataFrame]
DOCS = Path(__file__).resolve().parents[2] / "docs"
TASKS = ("walk", "walk-eos")
SEEDS = tuple(range(5))
EVAL_EVERY = 20
PLACE = ("task", "method", "regime", "staleness", "lr", "seed")
"""What tells apart the runs of a study, unless it names more."""
QUANTITIES = {
    "lag": "lag_mean",
    "ess": "ess_ratio",
    "kl": "kl_mu_theta_k3",
    "step_scale": "step_scale",
    "length": "length_mean",
}
"""Means over the updates whose lag has been reached, by the recorded column."""


def short(steps: int, prompts: int = 8) -> CellSettings:
    """Settings of a short run: few updates of few prompts x 8 responses, evaluated every 20 updates."""
    return CellSettings(steps=steps, prompts=prompts, eval_every=EVAL_EVERY)


@dataclass(frozen=True)
class Study:
    """A registered study.

    Attributes:
        name: Its folder under `docs/studies`.
        order: Place among the studies when all are run.
        grids: What it trains; equal cells of two grids are made once.
        seconds: Core-seconds of one run, as measured before the registration.
        shown: Names of its tables.
        tables: Those tables, from the runs of the whole study.
        answer: The sentences that the tables decide.
        place: Settings and axes that tell its runs apart.
        quantities: Means over the updates whose lag has been reached, by the recorded column.
    """

    name: str
    order: int
    grids: tuple[GridSpec, ...]
    seconds: float
    shown: tuple[str, ...]
    tables: Callable[[pd.DataFrame], Tables]
    answer: Callable[[Tables], Sequence[str]]
    place: tuple[str, ...] = PLACE
    quantities: Mapping[str, str] = field(default_factory=lambda: QUANTITIES)

    @property
    def folder(self) -> Path:
        """Where its registration, tables and page are."""
        return DOCS / "studies" / self.name

    def cells(self) -> dict[str, PlannedCell]:
        """Its cells by key."""
        return {cell.key: cell for grid in self.grids for cell in plan_grid(grid)}
