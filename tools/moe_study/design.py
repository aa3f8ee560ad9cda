"""What the study of router mismatch runs; docs/studies/moe/registration.md says why."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from arm_study.arms import Arm, main

from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.settings import CellSettings, Replay

METHODS = ("reinforce", "tis", "gspo(high=0.04,low=0.03)", "vespo", "vcpo")
SHIFT = ("rspo", "gmpo")
"""RSPO, and what it is without its router-shift factor: arms of their own, in no mean over methods."""
LAGS = (0, 4, 16)
LATE = (4, 16)
"""Lags at which replay can differ from the learner's own choice without noise."""
SEEDS = range(5)
STEPS = 50
SINCE = 20
"""First update that counts: the learning rate has risen and the queue of lag 16 is full."""
ROUTER_NOISE = "fifo(router_noise=0.4)"
DENSE_NOISE = "fifo(engine_noise=0.14)"


def _arm(
    name: str,
    regime: str,
    replay: Replay = "off",
    policy: str = "moe",
    lags: tuple[int, ...] = LAGS,
    methods: tuple[str, ...] = METHODS,
) -> Arm:
    settings = CellSettings(policy=policy, replay=replay, steps=STEPS)
    spec = GridSpec(methods, lags, SEEDS, ("chain",), (3e-4,), (regime,), settings, controls=False)
    return Arm(name, spec)


ARMS = (
    _arm("noise-off", ROUTER_NOISE),
    _arm("noise-r2", ROUTER_NOISE, "r2"),
    _arm("noise-r3", ROUTER_NOISE, "r3"),
    _arm("exact-off", "fifo"),
    _arm("exact-r2", "fifo", "r2", lags=LATE),
    _arm("dense-exact", "fifo", policy="tiny"),
    _arm("dense-noise", DENSE_NOISE, policy="tiny"),
    _arm("shift-noise-off", ROUTER_NOISE, methods=SHIFT),
    _arm("shift-noise-r2", ROUTER_NOISE, "r2", methods=SHIFT),
    _arm("shift-noise-r3", ROUTER_NOISE, "r3", methods=SHIFT),
    _arm("shift-exact-off", "fifo", methods=SHIFT),
    _arm("shift-exact-r2", "fifo", "r2", lags=LATE, methods=SHIFT),
)

__all__ = ["ARMS", "LAGS", "LATE", "METHODS", "SEEDS", "SINCE", "STEPS", "main"]
