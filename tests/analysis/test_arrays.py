"""Functions that take numbers take them as a training loop holds them: any device, half precision, with history."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from vcpo_bench.analysis import Monitor
from vcpo_bench.analysis.arrays import as_flags, as_floats, as_number
from vcpo_bench.analysis.diagnostics.ess import (
    entropy_ess,
    expected_ess,
    gaussian_ess,
    kish_ess,
    kl_ess,
    max_weight_ess,
)
from vcpo_bench.analysis.diagnostics.pareto_tail import pareto_k, tail
from vcpo_bench.analysis.monitoring.detectors import Detector, DetectorStream
from vcpo_bench.analysis.series import first_long_streak, trailing_mean

VALUES = [0.5, -0.25, 1.0, 0.0, -2.0, 0.125, 0.75, -0.5] * 5  # exact in bfloat16
HELPERS = Path(__file__).parents[1] / "helpers"
KINDS: dict[str, Callable[[], Any]] = {
    "requires_grad": lambda: torch.tensor(VALUES, requires_grad=True) * 1,
    "bfloat16": lambda: torch.tensor(VALUES, dtype=torch.bfloat16),
    "float16": lambda: torch.tensor(VALUES, dtype=torch.float16),
    "bfloat16 with history": lambda: torch.tensor(VALUES, dtype=torch.bfloat16, requires_grad=True) * 1,
    "numbers and tensors": lambda: [*VALUES[:3], *(torch.tensor(VALUES[3:], requires_grad=True) * 1).unbind()],
    "list of tensors": lambda: list((torch.tensor(VALUES, requires_grad=True) * 1).unbind()),
}
FUNCTIONS: dict[str, Callable[[Any], object]] = {
    "kish_ess": lambda x: float(kish_ess(x)),
    "entropy_ess": lambda x: float(entropy_ess(x)),
    "max_weight_ess": lambda x: float(max_weight_ess(x)),
    "kish_ess(where)": lambda x: float(kish_ess(np.array(VALUES), where=x)),
    "gaussian_ess": lambda x: gaussian_ess(x).tolist(),
    "kl_ess": lambda x: kl_ess(x, x).tolist(),
    "expected_ess": lambda x: expected_ess(x, 16).tolist(),
    "pareto_k": lambda x: float(pareto_k(x)),
    "tail": lambda x: tail(x, replications=20).k,
    "Detector.alarms": lambda x: Detector("ess", 2, 0.1).alarms(x).tolist(),
    "DetectorStream.feed": lambda x: [DetectorStream(Detector("ess", 2, 0.1)).feed(one) for one in x],
    "trailing_mean": lambda x: trailing_mean(x, 3).tolist(),
    "first_long_streak": lambda x: first_long_streak(x, 2),
    "Monitor.step": lambda x: readings(x),
}


def readings(values: Any) -> list[dict[str, float]]:
    """Gauges of three updates that are given every argument in this form."""
    monitor, one = Monitor(), values[0]
    given = {"rewards": values, "lengths": values, "token_kl": one, "grad_norm": one, "entropy": one}
    return [monitor.step(values, **given, columns={"token_ess_ratio": one}).gauges() for _ in range(3)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_tensors_of_a_loop_give_the_numbers_of_a_list(function: str, kind: str) -> None:
    np.testing.assert_equal(FUNCTIONS[function](KINDS[kind]()), FUNCTIONS[function](VALUES))


def test_flags_and_numbers() -> None:
    assert as_flags(torch.tensor([True, False])).tolist() == [True, False]
    assert as_floats(torch.tensor(3, dtype=torch.int32)).tolist() == 3.0
    assert as_number("entropy", torch.tensor([0.5], requires_grad=True)) == 0.5
    with pytest.raises(ValueError, match=r"entropy has shape \[2\]; it is one number per update"):
        Monitor().step([0.0], entropy=torch.zeros(2))  # type: ignore[arg-type]


MOCK = """
import sys
import mock_gpu, torch
from vcpo_bench.analysis import Monitor
from vcpo_bench.analysis.diagnostics.ess import kish_ess
from vcpo_bench.methods import Batch, parse_method
with mock_gpu.mocked():
    logs = torch.tensor([0.5, -0.25, 1.0, 0.0], dtype=torch.bfloat16, device=mock_gpu.NAME, requires_grad=True)
    here = [0.5, -0.25, 1.0, 0.0]
    assert float(kish_ess(logs)) == float(kish_ess(here))
    there = Monitor().step(logs, rewards=logs, token_kl=logs[0], columns={"token_ess_ratio": logs[0]})
    assert there.ess == Monitor().step(here).ess and there.reward == sum(here) / 4
    group = torch.zeros(4, dtype=torch.int64, device=mock_gpu.NAME)
    rows = dict(mask=torch.ones(4, 3, device=mock_gpu.NAME), group=group)
    policy = {name: -torch.rand(4, 3, device=mock_gpu.NAME, requires_grad=True) for name in ("logp", "behavior_logp")}
    batch = Batch.from_rows(**policy, **rows, reward=logs.float())
    found = parse_method("vespo+ess")(batch)
    assert batch.to_rows(found.coefficients).detach().cpu().isfinite().all()
"""


@pytest.mark.slow  # another process, which imports torch anew
def test_tensors_of_another_device() -> None:
    subprocess.run([sys.executable, "-c", MOCK], check=True, timeout=120, env=_environment())


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": ":".join([str(HELPERS), *(path for path in sys.path if path)]), "OMP_NUM_THREADS": "1"}
