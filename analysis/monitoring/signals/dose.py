"""How much stale movement an update adds: KL times rate times lag."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class Dose(Signal):
    """How much stale movement an update adds: KL times rate times lag."""

    name: ClassVar[str] = "dose"
    summary: ClassVar[str] = "token KL (k3) x learning rate of the step x mean lag"
    role: ClassVar[Role] = "weights"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("kl_mu_theta_k3", "lr", "lag_mean")

    def formula(self, steps: Updates) -> Array:
        """`[S]` the product."""
        return column(steps, "kl_mu_theta_k3") * column(steps, "lr") * column(steps, "lag_mean")
