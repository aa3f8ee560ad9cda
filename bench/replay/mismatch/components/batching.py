"""batching: how many prompts are answered at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vcpo_bench.bench.replay.mismatch.component import MismatchComponent
from vcpo_bench.bench.replay.mismatch.path import SamplingPath
from vcpo_bench.bench.replay.mismatch.setup import MismatchSetup
from vcpo_bench.naming.parameters import integer


@dataclass(frozen=True, kw_only=True)
class Batching(MismatchComponent):
    """Prompts are answered in small batches: other shapes take other kernels, which round differently.

    Attributes:
        prompts: Prompts at once.
    """

    name = "batching"
    summary = "attention over small batches instead of all prompts at once"
    prompts: int = integer(1, minimum=1)

    def switched(self, path: SamplingPath, setup: MismatchSetup) -> SamplingPath:
        """See `MismatchComponent.switched`."""
        return replace(path, prompts_at_once=self.prompts)
