"""Token KL times length: nats per sequence."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class KlLength(Signal):
    """Token KL times length: nats per sequence."""

    name: ClassVar[str] = "kl_length"
    summary: ClassVar[str] = "token KL (k3) times mean length"
    role: ClassVar[Role] = "weights"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("kl_mu_theta_k3", "length_mean")
    rank: ClassVar[int] = 5

    def formula(self, steps: Updates) -> Array:
        """`[S]` the product, nats per sequence."""
        return column(steps, "kl_mu_theta_k3") * column(steps, "length_mean")
