"""Blocks of runs, and how their rows are found again in a shipped table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.settings import CellSettings

PLACE = ["task", "method", "regime", "staleness", "lr", "seed", "prompts", "steps"]
"""What tells the runs of this study apart. Cell keys would too, but they move when a method is revised."""
EIGHT, FOUR = tuple(range(8)), tuple(range(4))
REFERENCE_PROMPTS, REFERENCE_STEPS = 16, 300
SECONDS = 0.05
"""Of one core, per update of 16 prompts x 8 responses: the estimate of the registration."""


@dataclass(frozen=True)
class Block:
    """A product of axes; every fact names the blocks it rests on, and equal runs of several facts are made once.

    Attributes:
        methods: Method expressions.
        task: Task expression.
        lags: Staleness, in updates.
        lr: Learning rate.
        seeds: Seeds.
        steps: Updates.
        regime: Regime expression.
        prompts: Prompts per update, 8 responses each.
    """

    methods: tuple[str, ...]
    task: str
    lags: tuple[int, ...]
    lr: float
    seeds: tuple[int, ...] = EIGHT
    steps: int = REFERENCE_STEPS
    regime: str = "fifo"
    prompts: int = REFERENCE_PROMPTS

    def cells(self) -> list[PlannedCell]:
        """The cells of the block."""
        settings = CellSettings(record="diagnostics", steps=self.steps, prompts=self.prompts)
        return plan_grid(
            GridSpec(
                methods=self.methods,
                staleness=self.lags,
                seeds=self.seeds,
                tasks=(self.task,),
                lrs=(self.lr,),
                regimes=(self.regime,),
                settings=settings,
                controls=False,
            )
        )

    def rows(self, runs: pd.DataFrame) -> pd.DataFrame:
        """The runs of this block among those of a table; fewer than its cells where some are missing."""
        wanted = {place_of(cell.config) for cell in self.cells()}
        found = [tuple(row) in wanted for row in runs[PLACE].itertuples(index=False)]
        return runs[pd.Series(found, index=runs.index, dtype=bool)]


def planned(blocks: Iterable[Block]) -> dict[str, PlannedCell]:
    """The cells of several blocks by key, each once."""
    return {cell.key: cell for block in blocks for cell in block.cells()}


def place_columns(configs: Iterable[CellConfig]) -> pd.DataFrame:
    """One row per configuration with the columns of `PLACE`."""
    return pd.DataFrame([place_of(config) for config in configs], columns=PLACE)


def minutes(cells: Iterable[PlannedCell]) -> float:
    """Estimated core-minutes."""
    updates = sum(cell.updates * cell.config.prompts / REFERENCE_PROMPTS for cell in cells)
    return updates * SECONDS / 60


def place_of(config: CellConfig) -> tuple[object, ...]:
    """What tells the run of a cell apart: the values of `PLACE`."""
    return tuple(getattr(config, name) for name in PLACE)
