"""Exact squared norms of the score gradient of every trajectory: see `ScoreNorms`."""

from vcpo_bench.bench.score_norms.accumulate import GradientSums
from vcpo_bench.bench.score_norms.chunked_head import ChunkedHead
from vcpo_bench.bench.score_norms.errors import InexactError
from vcpo_bench.bench.score_norms.norms import ScoreNorms
from vcpo_bench.bench.score_norms.statistics import inner_products, noise_to_signal

__all__ = ["ChunkedHead", "GradientSums", "InexactError", "ScoreNorms", "inner_products", "noise_to_signal"]
