"""Cells on another device than the CPU, a pretended one that refuses mixtures of devices as a GPU does."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pretended_cells
import pytest


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[ProcessPoolExecutor]:
    """A process that may have the device: it cannot be taken back."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


def test_the_device_refuses_company(elsewhere: ProcessPoolExecutor) -> None:
    assert "expected all tensors on the same device" in elsewhere.submit(pretended_cells.mixed).result()


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("vcpo", {"record": "full"}),
        ("vcpo", {"micro_tokens": 60}),
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
def test_a_cell_trains_there_as_here_also_when_interrupted(
    elsewhere: ProcessPoolExecutor, method: str, more: dict[str, Any]
) -> None:
    config = {"method": method, "task": "walk-eos", "staleness": 2} | more
    there = elsewhere.submit(pretended_cells.train_elsewhere, config, interrupted=True)
    here = pretended_cells.train(config)
    found = there.result()
    assert found.keys() == here.keys()
    for name, values in here.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
