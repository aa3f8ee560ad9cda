"""The gradient of every method in the real TRL, at one and two ranks, with one and four micro-batches."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from patience import within

pytest.importorskip("trl", reason="runs in .ci/integrations trl")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from adapter_expressions import supported
from trl_runs import LENGTH

from vcpo_bench.adapters.locality import of_the_learner

SCRIPT = Path(__file__).resolve().parents[1] / "helpers" / "trl_gradients.py"
SUPPORTED = supported(lambda it: any(of_the_learner(it)))


def launch(ranks: int, *arguments: str) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable]
    if ranks > 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command += ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--master-port", str(port)]
    done = subprocess.run(
        [*command, str(SCRIPT), *arguments], env=environment, capture_output=True, text=True, timeout=within(800)
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("micro", [1, 4])
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_gradient_of_every_method_is_exact(tmp_path: Path, ranks: int, micro: int) -> None:
    launch(ranks, str(tmp_path), str(micro), *SUPPORTED)
    parts = [json.loads((tmp_path / f"rank{rank}-micro{micro}.json").read_text()) for rank in range(ranks)]
    assert [one["expression"] for one in parts[0]] == SUPPORTED
    assert {length for one in parts[0] for length in one["lengths"]} == set(range(LENGTH + 1))
    for own in parts:
        for one, first in zip(own, parts[0], strict=True):
            assert one["error"] < 1e-5, one
            assert one["scale"] == pytest.approx(one["wanted_scale"], rel=1e-6), one
            assert one["scale"] == first["scale"], one
            assert one["empty_groups"] >= 1
            assert one["groups"] == [8]
    assert sum(one["size"] > 1e-3 for one in parts[0]) > 0.9 * len(SUPPORTED)
    assert any(one["scale"] < 0.95 for one in parts[0])
