"""Token KL from the sampler to the current policy."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class Kl(Signal):
    """Token KL from the sampler to the current policy."""

    name: ClassVar[str] = "kl"
    summary: ClassVar[str] = "token KL(mu || theta), estimator k3"
    role: ClassVar[Role] = "weights"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("kl_mu_theta_k3",)
    rank: ClassVar[int] = 4

    def formula(self, steps: Updates) -> Array:
        """`[S]` the column, nats per token."""
        return column(steps, "kl_mu_theta_k3")
