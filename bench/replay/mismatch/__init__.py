"""Which part of a sampler makes it disagree with the trainer: components switched one by one from the exact path."""

from vcpo_bench.bench.replay.mismatch.attribute import Attribution, attribute
from vcpo_bench.bench.replay.mismatch.component import COMPONENTS
from vcpo_bench.bench.replay.mismatch.setup import MismatchSetup, open_setup

__all__ = ["COMPONENTS", "Attribution", "MismatchSetup", "attribute", "open_setup"]
