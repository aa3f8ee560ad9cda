"""Which trainer classes can carry a method, with a stand-in for TRL in the layout of 1.18.

Its release notes (github.com/huggingface/trl/releases/tag/v1.18.0): `AsyncGRPOTrainer` is imported from `trl`, and from
`trl.experimental.async_grpo` with a warning until 2.0; before 1.18 it was there only.
"""

import sys
from types import ModuleType
from typing import Any

import pytest

from vcpo_bench.adapters.trl import with_method
from vcpo_bench.adapters.trl.monitor import WeightMonitor
from vcpo_bench.errors import UsageError


@pytest.fixture
def trl(monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = ModuleType("trl")
    for name in ("GRPOTrainer", "AsyncGRPOTrainer"):
        setattr(module, name, type(name, (), {"__module__": "trl.trainer"}))
    monkeypatch.setitem(sys.modules, "trl", module)
    return module


def test_the_asynchronous_trainer_is_refused_wherever_it_was_imported_from(trl: Any) -> None:
    older = type("AsyncGRPOTrainer", (), {"__module__": "trl.experimental.async_grpo"})
    own = type("Mine", (trl.AsyncGRPOTrainer,), {})
    for kind in (trl.AsyncGRPOTrainer, older, own):
        with pytest.raises(UsageError, match=r"packed rows without rewards .*lag='fifo\(k\)'"):
            with_method(kind, "vcpo")


def test_the_trainer_and_its_subclasses_carry_one_method(trl: Any) -> None:
    own = type("Mine", (trl.GRPOTrainer,), {})
    made: Any = with_method(own, "vcpo", lag="fifo(8)")
    assert issubclass(made, own)
    assert (made.__name__, made.method.canonical, made.lag) == ("MineWithMethod", "vcpo", 8)
    with pytest.raises(UsageError, match="carries a method already"):
        with_method(made, "tis")
    with pytest.raises(UsageError, match="not dict"):
        with_method(dict, "tis")


def test_the_monitor_of_a_trainer_without_such_a_loss_is_refused_at_once() -> None:
    class SFTTrainer:
        pass

    with pytest.raises(UsageError, match="hears the loss of a GRPOTrainer, and SFTTrainer has another"):
        WeightMonitor(SFTTrainer())
