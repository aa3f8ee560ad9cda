"""How often a mirror looks, and how long it is waited for."""

from __future__ import annotations

import os


def _seconds(name: str, default: str) -> float:
    return float(os.environ.get(f"VCPO_BENCH_MIRROR_{name}_SECONDS", default))


LOOK_SECONDS = _seconds("LOOK", "3")
"""Seconds between two updates from the results folder."""
PATIENCE_SECONDS = _seconds("PATIENCE", "60")
"""Seconds without a heartbeat after which, once the run is over, the mirror is killed."""
INTERRUPTED_SECONDS = 1.0
"""The same after an interrupted run: when it resumes, so does the mirror."""
