"""The estimator probe: bias, variance and signal-to-noise of every method's update at a recorded checkpoint."""

from vcpo_bench.bench.replay.probe.command import default_path, probe_cell, run_probe
from vcpo_bench.bench.replay.probe.point import ProbePoint, probe_point
from vcpo_bench.bench.replay.probe.spec import ProbeSpec, check_probe

__all__ = [
    "ProbePoint", "ProbeSpec", "check_probe", "default_path", "probe_cell", "probe_point", "run_probe",
]  # fmt: skip
