"""head: the precision of the output head."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vcpo_bench.bench.replay.mismatch.component import MismatchComponent
from vcpo_bench.bench.replay.mismatch.path import SamplingPath
from vcpo_bench.bench.replay.mismatch.setup import MismatchSetup
from vcpo_bench.bench.samplers.engines.published import rounded
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class Head(MismatchComponent):
    """The sampler's output head is rounded. Where it is tied to the embeddings, they are too.

    Attributes:
        to: Precision.
    """

    name = "head"
    summary = "output head rounded, with the embeddings where they are tied"
    to: str = choice("bf16", "fp16", "int8")

    def switched(self, path: SamplingPath, setup: MismatchSetup) -> SamplingPath:
        """See `MismatchComponent.switched`."""
        weights = {
            name: rounded(weight, self.to) if name in setup.head else weight for name, weight in path.weights.items()
        }
        return replace(path, weights=weights)
