"""Shares of the tokens that the method does not count in full."""

from vcpo_bench.records.diagnostic import MethodMetric

COLUMNS = (
    MethodMetric("share_clipped", "0..1", "share of tokens whose weight or surrogate was clipped or capped"),
    MethodMetric("share_masked", "0..1", "share of tokens that a mask removed"),
)
