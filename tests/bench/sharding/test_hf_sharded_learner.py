"""Two gloo processes on a CPU against one: gradients, score norms, coefficients, steps, checkpoints, samples."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
import shard_cases

from vcpo_bench.bench.sharding.ranks import meeting_place

TOLERANCE = 1e-4
"""Largest difference, relative to the largest number of its kind; those of score norms are relative to each norm."""

Compare = Callable[..., dict[str, float]]


@pytest.fixture(scope="module")
def compare() -> Iterator[Compare]:
    context = multiprocessing.get_context("spawn")
    store = meeting_place(2)
    pools = [ProcessPoolExecutor(1, context) for _ in range(2)]
    for meeting in [pool.submit(shard_cases.meet, store.port, number) for number, pool in enumerate(pools)]:
        meeting.result()

    def run(*case: Any) -> dict[str, float]:
        results = [pool.submit(shard_cases.compare, *case) for pool in pools]
        first, _ = (result.result() for result in results)
        return first

    yield run
    for pool in pools:
        pool.shutdown()


@pytest.mark.parametrize(
    ("method", "tied", "chunk", "settings"),
    [
        ("vcpo", False, False, {}),
        ("vcpo", True, True, {"micro_tokens": 40, "recompute": True}),
        ("clip", False, True, {"full": True}),
        ("clip", True, False, {"micro_tokens": 40}),
        ("vespo", False, False, {"micro_tokens": 40, "recompute": True}),
        ("vespo", True, True, {}),
        ("clip+kl(anchor=reference)", True, False, {}),
        ("clip+gac", False, False, {}),
        ("vcpo", True, False, {"lora": 2}),
    ],
)
def test_two_processes_do_what_one_does(
    compare: Compare, method: str, tied: bool, chunk: bool, settings: dict[str, Any]
) -> None:
    model = {"kind": "llama", "tie_word_embeddings": tied}
    found = compare(method, model, chunk, settings)
    assert {"gradient", "weights", "logp", "coefficients", "grad_norm", "step_scale", "checkpoint"} <= found.keys()
    assert ("score_norms" in found) == (method == "vcpo" or bool(settings.get("full")))
    assert ("grad_cosine" in found) == bool(settings.get("full"))
    assert {name: value for name, value in found.items() if value > TOLERANCE} == {}


@pytest.mark.parametrize("settings", [{}, {"lora": 2}, {"recompute": True}])
def test_bfloat16_is_rounded_as_in_one_process(compare: Compare, settings: dict[str, Any]) -> None:
    found = compare("vcpo", {"kind": "llama"}, True, settings | {"half": True})
    assert {name: value for name, value in found.items() if value > TOLERANCE} == {}


def test_other_models_do_too(compare: Compare) -> None:
    found = compare("vcpo", {"kind": "gpt2"}, False, {})
    assert {name: value for name, value in found.items() if value > TOLERANCE} == {}
