"""A stack on a mock device that raises when tensors of different devices meet, by the way a GPU takes.

There it differs from a CPU in the layer norm, the sampling of responses that end, score norms, what sees gradients, and
the optimizer. Policies on the mock device are no views of the stack, so a checkpoint is given the stack's weights here.
"""

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import stacked_on_mock


@pytest.mark.parametrize(
    ("methods", "task"),
    [
        (["clip", "clip", "reinforce+entropy(beta=0.02)", "clip+ess(base=measured)", "reinforce+gac"], "walk-eos"),
        pytest.param(["vcpo", "vcpo", "vcpo"], "chain", marks=pytest.mark.slow),
        pytest.param(["clip+kl(beta=0.1)", "m2po", "clip"], "chain", marks=pytest.mark.slow),
    ],
)
def test_a_stack_trains_on_it_as_on_the_cpu(elsewhere: ProcessPoolExecutor, methods: list[str], task: str) -> None:
    there = elsewhere.submit(stacked_on_mock.grad_norms_on_mock, methods, task, 4)
    here = stacked_on_mock.grad_norms(methods, task, 4)
    for ours, theirs in zip(here, there.result(), strict=True):
        # a batch without a gradient leaves a norm of rounding, hence the absolute part
        np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "methods", [["vcpo", "vcpo"], pytest.param(["clip", "reinforce+gac", "clip"], marks=pytest.mark.slow)]
)
def test_a_stack_goes_on_from_checkpoints_on_it(
    elsewhere: ProcessPoolExecutor, methods: list[str], tmp_path: Path
) -> None:
    """Moments and steps of the optimizer of all cells reach the checkpoint of each, and come back."""
    whole, resumed = elsewhere.submit(stacked_on_mock.resumed_on_mock, methods, "chain", 4, tmp_path).result()
    for ours, theirs in zip(resumed, whole, strict=True):
        assert len(ours) == 4
        np.testing.assert_array_equal(ours, theirs)
