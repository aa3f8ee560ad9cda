"""Exact per-trajectory score norms: see `ScoreNorms`."""

from vcpo_bench.bench.score_norms.inspection import InexactError
from vcpo_bench.bench.score_norms.norms import ScoreNorms

__all__ = ["InexactError", "ScoreNorms"]
