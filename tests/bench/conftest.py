"""Fixtures of several rooms of the bench."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from vcpo_bench.bench.tasks.token_task import TokenTask
from vcpo_bench.bench.training.trainer import Trainer


@pytest.fixture
def no_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held-out prompts take most of the time of a short run, and are no concern of what most tests look at."""
    monkeypatch.setattr(Trainer, "_evaluate", lambda self: None)


@pytest.fixture(scope="module")
def few_questions() -> Iterator[None]:
    """Evaluations in this process ask at most 8 held-out prompts."""
    every = TokenTask.held_out
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TokenTask, "held_out", lambda self, count=8: every(self, min(count, 8)))
        yield


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[ProcessPoolExecutor]:
    """A process for the mock device, which cannot be undone."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool
