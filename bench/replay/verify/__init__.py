"""Whether declared versions of rollouts are true: recorded tokens and canaries, scored again under known weights."""

from vcpo_bench.bench.replay.verify.canaries import Canaries
from vcpo_bench.bench.replay.verify.cells import verify_cell
from vcpo_bench.bench.replay.verify.findings import VersionVerdict

__all__ = ["Canaries", "VersionVerdict", "verify_cell"]
