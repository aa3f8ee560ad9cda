"""What `vcpo-bench new regime NAME` writes: a regime that works as it stands, and its test."""

MODULE = '''"""{title}: say here what system this lag comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.bench.regimes import BatchPerUpdate, CellShape, Order, Regime
from vcpo_bench.naming.parameters import integer


class {cls}Schedule(BatchPerUpdate):
    """Update t consumes batch t; its lag is 0 for `every` updates, then k for as many.

    Args:
        staleness: Largest lag k.
        shape: Sizes and seed of the cell.
        publish_every: See the base class.
        every: Updates between two changes of the lag.
    """

    def __init__(self, staleness: int, shape: CellShape, publish_every: int, every: int) -> None:
        super().__init__(staleness, shape, publish_every)
        self.every = every

    def lag(self, update: int) -> int:
        """Lag of the batch that `update` consumes; never more than there were updates."""
        return min(update, self.staleness * (update // self.every % 2))

    def admit(self, update: int) -> list[Order]:
        """The batches that updates t..t+k need from theta_t."""
        later = range(update, update + self.staleness + 1)
        return [Order(batch) for batch in later if batch - self.lag(batch) == update]


@dataclass(frozen=True, kw_only=True)
class {cls}(Regime):
    """Fresh and old batches in turn."""

    name: ClassVar[str] = "{name}"
    summary: ClassVar[str] = "lag 0 and lag k in turn"

    every: int = integer(2, minimum=1)

    def build(self, staleness: int, shape: CellShape) -> {cls}Schedule:
        """The schedule at a lag of 1 or more."""
        return {cls}Schedule(staleness, shape, self.publish_every, self.every)
'''

TEST = '''"""{title}: it keeps what every regime promises, its lags are the intended ones, and a cell trains in it."""

from pathlib import Path

import pytest

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.bench.regimes.checks import SMALL, check_regime
from vcpo_bench.bench.regimes.plan import plan
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.naming.plugins import load_plugin

FILE = Path(__file__).with_name("{module}.py")
if FILE.exists():  # beside its test it is a plug-in; in `bench/regimes/` it is found without
    load_plugin(FILE)


@pytest.mark.parametrize("expression", ["{name}", "{name}(every=3)", "{name}(publish_every=2)"])
@pytest.mark.parametrize("staleness", [0, 1, 4])
def test_it_keeps_what_every_regime_promises(expression: str, staleness: int) -> None:
    check_regime(REGIMES.parse(expression), staleness)


def test_the_lag_is_zero_and_k_in_turn() -> None:
    planned = plan(REGIMES.parse("{name}").schedule(4, SMALL), 12)
    assert [max(each.lags) for each in planned] == [0, 0, 2, 3, 0, 0, 4, 4, 0, 0, 4, 4]


def test_a_cell_trains_in_it() -> None:
    sizes = {{"steps": 6, "prompts": 2, "responses": 2, "eval_every": 100}}
    trainer = build_trainer(CellConfig(method="clip", regime="{name}", staleness=2, seed=0, **sizes))
    while not trainer.status:
        trainer.advance()
    trainer.close()
    assert trainer.status == "completed"
    lags = trainer.recorder.tables["steps.parquet"].columns["lag_max"]
    assert lags == [0, 0, 2, 2, 0, 0]
'''
