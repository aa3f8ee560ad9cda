"""Stage 6: the gradient of every method inside TRL's trainer on the device, against an oracle."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kit import Failed, Result, Setup, Skipped

HELPERS = Path(__file__).parents[2] / "helpers"
TOLERANCE = 1e-3
"""Relative l2 error of a gradient, as between devices."""


def gradients(setup: Setup, micro: int) -> Result:
    """One optimizer step per method in `GRPOTrainer`, whole or in micro-batches."""
    if setup.device.startswith("mock"):
        raise Skipped("TRL asks torch for a device, which the mock device is not")
    os.environ["TRL_RUNS_DEVICE"] = setup.device
    sys.path.insert(0, str(HELPERS))
    try:
        import trl
        from adapter_expressions import supported
        from trl_gradients import measure

        from vcpo_bench.adapters.locality import of_the_learner
    except ImportError as missing:
        raise Skipped(f"{missing.name} is not installed") from missing

    wanted = supported(lambda it: any(of_the_learner(it)))
    rows = measure(str(setup.work / f"trl-{micro}"), micro, setup.pick(wanted, ["vcpo", "clip", "vespo"]))
    errors = {row["expression"]: row["error"] for row in rows}
    found = {"trl": trl.__version__, "checked": len(errors), "largest_error": max(errors.values()), "errors": errors}
    if wrong := {name: error for name, error in errors.items() if not error <= TOLERANCE}:
        raise Failed(f"gradients are off: {wrong}", found)
    return found
