"""top-p: each distribution is cut before a token is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vcpo_bench.bench.policies.truncation import Truncation
from vcpo_bench.bench.replay.mismatch.component import MismatchComponent
from vcpo_bench.bench.replay.mismatch.path import SamplingPath
from vcpo_bench.bench.replay.mismatch.setup import MismatchSetup
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class TopP(MismatchComponent):
    """The sampler draws from the most likely tokens and reports log-probabilities of what it drew from.

    Attributes:
        p: Probability mass kept.
    """

    name = "top-p"
    summary = "distributions cut to their most likely tokens, without replay of the mask"
    p: float = number(0.95, above=0.0, maximum=1.0)

    def why_not(self, setup: MismatchSetup) -> str:
        """See `MismatchComponent.why_not`."""
        return "the engine draws from the whole distribution here" if setup.engine else ""

    def switched(self, path: SamplingPath, setup: MismatchSetup) -> SamplingPath:
        """See `MismatchComponent.switched`."""
        return replace(path, truncation=Truncation(self.p))
