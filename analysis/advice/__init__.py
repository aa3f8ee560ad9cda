"""Which method at a lag: what our studies and the papers know, and what they do not."""

from vcpo_bench.analysis.advice.advise import Choice, Recommendation, advise

__all__ = ["Choice", "Recommendation", "advise"]
