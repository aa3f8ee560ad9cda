"""The ESS beyond what a log-normal tail explains."""

from typing import ClassVar

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class EssBeyondKl(Signal):
    """The ESS beyond what a log-normal tail explains."""

    name: ClassVar[str] = "ess_beyond_kl"
    summary: ClassVar[str] = "ESS lower than the KL explains: -log(ess_ratio) - 2 x token KL (k3) x mean length"
    role: ClassVar[Role] = "weights"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("ess_ratio", "kl_mu_theta_k3", "length_mean")

    def formula(self, steps: Updates) -> Array:
        """`[S]` the logarithm of exp(-2 L K3) over the ESS ratio; 0 for log-normal weights."""
        return -np.log(column(steps, "ess_ratio")) - 2 * column(steps, "kl_mu_theta_k3") * column(steps, "length_mean")
