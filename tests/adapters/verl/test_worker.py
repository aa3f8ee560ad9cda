"""The optimizer step of a worker, with a real optimizer and an engine of a few lines."""

import pytest
import torch

from vcpo_bench.adapters.verl.worker import ScaledStep


class Engine:
    def __init__(self) -> None:
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.optimizer = torch.optim.SGD([{"params": [self.weight], "lr": 0.5}])
        self.fails = False

    def optimizer_step(self) -> float:
        if self.fails:
            raise RuntimeError("lost")
        self.optimizer.step()
        return 2.0


def test_the_step_is_scaled_and_the_rate_is_the_schedulers_again() -> None:
    engine = Engine()
    step = ScaledStep(engine)
    engine.weight.grad = torch.ones(2)
    step.scale = 0.25
    assert step() == 2.0
    assert engine.weight.tolist() == [0.875, 0.875]
    assert engine.optimizer.param_groups[0]["lr"] == 0.5
    engine.fails = True
    with pytest.raises(RuntimeError, match="lost"):
        step()
    assert engine.optimizer.param_groups[0]["lr"] == 0.5


def test_a_step_that_is_left_out_changes_nothing() -> None:
    engine = Engine()
    step = ScaledStep(engine)
    engine.weight.grad = torch.full((2,), torch.nan)
    step.skip = True
    assert step() == 0.0
    assert engine.weight.tolist() == [1.0, 1.0]
