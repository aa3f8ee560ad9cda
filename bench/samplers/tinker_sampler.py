"""tinker: the server that trains samples too."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.bench.samplers.catalog import Sampler


@dataclass(frozen=True, kw_only=True)
class TinkerSampler(Sampler):
    """Samples from the weights that `--learner tinker` has published on its server. It is chosen with that learner."""

    name = "tinker"
    summary = "the Tinker server that trains; comes with --learner tinker"
    needs_language_model = True
    for_language_models = True
    exact = False
    comes_with = "tinker"
