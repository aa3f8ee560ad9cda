"""A sampler that records wrong log-probabilities is noticed by the measurements of launches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import kit

pytest.importorskip("transformers", reason="runs in .ci/integrations hf")

from stages import launches

from vcpo_bench.bench.policies.hf.sampling import refill

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.hf.network import CausalNetwork
    from vcpo_bench.bench.policies.hf.sampling import TokenDraws
    from vcpo_bench.bench.trajectories import Rollout


def test_a_graph_that_goes_wrong_in_the_end_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = kit.Setup("cpu", True, tmp_path, lambda: 60.0)
    found = launches.fused(setup)
    assert [row["loop"] for row in found["batches"]] == ["graph", "fused"]
    assert found["equality"][0]["bit_identical"]

    def wrong(model: CausalNetwork, draws: TokenDraws) -> Rollout:
        drawn = refill(model, draws)
        drawn.logp[:, -1] -= 0.5
        return drawn

    monkeypatch.setitem(launches.LOOPS, "graph", lambda: wrong)
    with pytest.raises(kit.Failed, match=r"graph, 16 x 6: 0.5 nats from the learner") as raised:
        launches.measure(setup)
    assert [row["loop"] for row in raised.value.result["batches"]] == ["buckets", "graph"]
