"""weights: the precision of all weights but those of the output head."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vcpo_bench.bench.replay.mismatch.component import MismatchComponent
from vcpo_bench.bench.replay.mismatch.path import SamplingPath
from vcpo_bench.bench.replay.mismatch.setup import MismatchSetup
from vcpo_bench.bench.samplers.engines.published import rounded
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class RoundedWeights(MismatchComponent):
    """The sampler holds rounded weights; its arithmetic stays as it is.

    Attributes:
        to: Precision. `int8` has one scale per row of a matrix and leaves vectors alone.
    """

    name = "weights"
    summary = "weights rounded, but for the output head"
    to: str = choice("bf16", "fp16", "int8")

    def switched(self, path: SamplingPath, setup: MismatchSetup) -> SamplingPath:
        """See `MismatchComponent.switched`."""
        weights = {
            name: weight if name in setup.head else rounded(weight, self.to) for name, weight in path.weights.items()
        }
        return replace(path, weights=weights)
