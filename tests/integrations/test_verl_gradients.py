"""The gradient of every method in verl's trainer and worker, at one and two ranks, with one and four micro-batches."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transfer_queue")  # verl itself is imported in processes of their own, with our plugin

from vcpo_bench.adapters.locality import locality_of
from vcpo_bench.methods import method_names, parse_method, part_names

SCRIPT = Path(__file__).resolve().parents[1] / "helpers" / "verl_gradients.py"
PARTS = [f"reinforce+{name}" for name in part_names() if name not in method_names()]
COMBINATIONS = [
    "vcpo(baseline=group)",
    "vcpo+otb",
    "clip+entropy",
    "clip+ess(base=measured)",
    "tis+seq-mean-token-sum-norm",
    "vespo+otb(weights=on)",
    "gepo(scope=batch)",
    "clip+psis",
    "decoupled(proximal=loglinear)",
]


def supported(text: str) -> bool:
    locality = locality_of(parse_method(text))
    whole = locality.acts_on_gradient or locality.measures_drift or "score_norm_sq" in locality.needs
    refused = locality.borrows is not None or whole
    return not refused and "reference_logp" not in locality.needs


SUPPORTED = [text for text in [*method_names(), *PARTS, *COMBINATIONS] if supported(text)]
WITH_EPOCHS = ["clip", "vespo", "snis", "gepo", "decoupled", "reinforce+otb", "clip+ess(base=measured)", "inverse-lag"]


def launch(folder: Path, ranks: int, *arguments: object) -> list[list[dict[str, Any]]]:
    """Results of each rank."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    done = subprocess.run(
        [*torchrun, str(SCRIPT), str(folder), *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=800,
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
