from collections.abc import Callable

import numpy as np
import pytest

from vcpo_bench.records.step_facts import StepFacts
from vcpo_bench.records.steps import DIAGNOSTICS

Compute = Callable[..., object]


@pytest.fixture
def facts() -> Callable[..., StepFacts]:
    """Facts of an update whose tokens all count and were sampled by the current policy, but for what is given."""

    def make(log_ratio: object = None, **more: object) -> StepFacts:
        ratio = np.zeros((2, 3)) if log_ratio is None else np.asarray(log_ratio, dtype=float)
        given = {"mask": np.ones(ratio.shape, dtype=bool), "version": np.zeros(ratio.shape, dtype=np.int64)}
        return StepFacts(**({"step": 0, "log_ratio": ratio, "entropy": np.ones(ratio.shape)} | given | more))

    return make


@pytest.fixture
def value() -> Callable[[str, StepFacts], object]:
    """The value of a column."""
    return lambda name, facts: DIAGNOSTICS[name].compute(facts)
