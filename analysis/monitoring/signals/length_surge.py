"""Responses that grow, against the beginning of the run."""

from typing import ClassVar

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column

BEGINNING = 50
"""Updates whose mean length is the reference, as in the schedule of arXiv 2602.01826."""


class LengthSurge(Signal):
    """Responses that grow, against the beginning of the run (arXiv 2602.01826).

    Where responses have one length it is 1 throughout.
    """

    name: ClassVar[str] = "length_surge"
    summary: ClassVar[str] = f"mean length over its mean in the first {BEGINNING} updates"
    role: ClassVar[Role] = "policy"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("length_mean",)
    memory: ClassVar[int | None] = None

    def formula(self, steps: Updates) -> Array:
        """`[S]` the ratio; in the first updates, to the mean up to there."""
        length = column(steps, "length_mean")
        known = np.isfinite(length)
        known[..., BEGINNING:] = False
        sums = np.cumsum(np.where(known, length, 0.0), axis=-1)
        return np.asarray(length * np.cumsum(known, axis=-1) / sums)
