"""Cells on a mock device that raises when tensors of different devices meet, as a GPU does."""

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import mock_cells
import numpy as np
import pytest


def test_the_device_refuses_mixed_operands(elsewhere: ProcessPoolExecutor) -> None:
    assert "expected all tensors on the same device" in elsewhere.submit(mock_cells.mixed).result()


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("vcpo", {"record": "full"}),
        pytest.param("vcpo", {"micro_tokens": 60}, marks=pytest.mark.slow),
        ("clip", {"task": "chain", "record": "diagnostics"}),
        pytest.param("clip(anchor=proximal)", {"regime": "minibatch", "staleness": 3}, marks=pytest.mark.slow),
        pytest.param("reinforce+gac", {"regime": "async(clock=virtual)"}, marks=pytest.mark.slow),
        pytest.param("kl-cov", {"regime": "random"}, marks=pytest.mark.slow),
        pytest.param("tba", {"regime": "fifo(publish_every=2,engine_noise=bf16)"}, marks=pytest.mark.slow),
        pytest.param("vespo", {"regime": "inflight"}, marks=pytest.mark.slow),
        pytest.param("dppo-tv", {"regime": "inflight(cache=recompute)"}, marks=pytest.mark.slow),
        pytest.param("gspo", {"regime": "replay"}, marks=pytest.mark.slow),
    ],
)
def test_a_cell_trains_on_it_as_on_the_cpu_also_when_interrupted(
    elsewhere: ProcessPoolExecutor, method: str, more: dict[str, Any]
) -> None:
    config = {"method": method, "task": "walk-eos", "staleness": 2} | more
    there = elsewhere.submit(mock_cells.train_on_mock, config, interrupted=True)
    here = mock_cells.train(config)
    found = there.result()
    assert found.keys() == here.keys()
    for name, values in here.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
