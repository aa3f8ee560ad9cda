"""lag: the sampler holds weights of some updates ago."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from vcpo_bench.bench.replay.mismatch.component import MismatchComponent
from vcpo_bench.bench.replay.mismatch.path import SamplingPath
from vcpo_bench.bench.replay.mismatch.setup import MismatchSetup
from vcpo_bench.naming.parameters import integer


@dataclass(frozen=True, kw_only=True)
class Lag(MismatchComponent):
    """The sampler has not seen the trainer's last updates, made by REINFORCE on the task.

    Attributes:
        k: Updates.
    """

    name = "lag"
    summary = "weights of some updates ago"
    place = 0
    k: int = integer(4, minimum=1)

    @property
    def lag(self) -> int:
        """See `MismatchComponent.lag`."""
        return self.k

    def why_not(self, setup: MismatchSetup) -> str:
        """See `MismatchComponent.why_not`."""
        if any(not torch.equal(setup.older[name], weight) for name, weight in setup.exact.weights.items()):
            return ""
        return (
            "its updates changed nothing, since all responses to a prompt had equal rewards; start from a warm policy"
        )

    def switched(self, path: SamplingPath, setup: MismatchSetup) -> SamplingPath:
        """See `MismatchComponent.switched`."""
        return replace(path, weights=setup.older)
