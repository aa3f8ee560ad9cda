"""The gradient of every method in verl's trainer and worker, at one and two ranks, with one and four micro-batches."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import within

# verl itself is imported in processes of their own, with our plugin
pytest.importorskip("transfer_queue", reason="runs in .ci/integrations verl")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from adapter_expressions import supported

from vcpo_bench.adapters.locality import Locality, of_the_learner
from vcpo_bench.methods import parse_method

SCRIPT = Path(__file__).resolve().parents[1] / "helpers" / "verl_gradients.py"


def refused(it: Locality) -> bool:
    return any(of_the_learner(it)) or it.acts_on_gradient


SUPPORTED = supported(refused)
WITH_EPOCHS = [
    "clip",
    "vespo",
    "snis",
    "gepo",
    "decoupled",
    "reinforce+otb",
    "clip+ess(base=measured)",
    "inverse-lag",
    "vcpo",
]


def launch(folder: Path, ranks: int, *arguments: object) -> list[list[dict[str, Any]]]:
    """Results of each rank."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    done = subprocess.run(
        [*torchrun, str(SCRIPT), str(folder), *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=within(800),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(ranks)]


def check(parts: list[list[dict[str, Any]]]) -> None:
    for own in parts:
        for one, first in zip(own, parts[0], strict=True):
            assert one["error"] < 1e-5, one
            assert one["scale"] == pytest.approx(one["wanted_scale"], rel=1e-6), one
            assert one["scale"] == first["scale"], one
            assert one["logged_scale"] == first["logged_scale"], one
    assert any(one["scale"] < 0.95 for one in parts[0])


@pytest.mark.parametrize(("ranks", "micro"), [(1, 1), (2, 4)])
def test_the_gradient_of_every_method_is_exact(tmp_path: Path, ranks: int, micro: int) -> None:
    parts = launch(tmp_path, ranks, micro, 1, 1, *SUPPORTED)
    assert [one["expression"] for one in parts[0]] == [parse_method(text).canonical for text in SUPPORTED]
    check(parts)
    for one in parts[0]:
        assert one["groups"] == [3, 4, 4, 4]
        assert one["empty_groups"] == one["filled_up"] == 1
    assert {length for one in parts[0] for length in one["lengths"]} == {0, 2, 3, 4, 5}
    assert sum(one["size"] > 1e-3 for one in parts[0]) > 0.9 * len(SUPPORTED)


@pytest.mark.parametrize("ranks", [1, 2])
def test_every_optimizer_step_of_a_batch_is_scored_anew(tmp_path: Path, ranks: int) -> None:
    parts = launch(tmp_path, ranks, 2, 2, 2, *WITH_EPOCHS)
    assert len(parts[0]) == 4 * len(WITH_EPOCHS)
    check(parts)
    assert {tuple(one["groups"]) for one in parts[0]} == {(4, 4), (3, 4)}
