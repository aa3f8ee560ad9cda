"""Score norms and gradients of all cells at once, the way a GPU takes, against the way of a CPU, cell by cell."""

import math
import multiprocessing
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import stacked_on_mock
import torch
from stacked_cells import cell, recorded

from vcpo_bench.bench.stack import learner
from vcpo_bench.bench.stack.batched_norms import BatchedNormPasses
from vcpo_bench.bench.stack.gradients import StackedGradients
from vcpo_bench.bench.stack.learner import StackedLearner
from vcpo_bench.bench.stack.passes import NormPasses
from vcpo_bench.bench.stack.stack import Stack
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.trajectories import Responses
from vcpo_bench.methods import Update

pytestmark = pytest.mark.usefixtures("few_questions")

TOLERANCES = {6: 1e-5, 40: 1e-4}
"""By number of updates, as training amplifies rounding. Relative; absolute for log-weights that are only rounding."""


@pytest.fixture
def batched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The CPU takes the way of a GPU, but for samplers and optimizers."""
    own = StackedLearner.__init__

    def build(self: StackedLearner, *args: object) -> None:
        own(self, *args)  # type: ignore[arg-type]
        self._gradients = StackedGradients(self.weights, self.learners)

    with monkeypatch.context() as patch:
        patch.setattr(learner, "NormPasses", BatchedNormPasses)
        patch.setattr(StackedLearner, "__init__", build)
        yield


def stack_of(methods: list[str], **more: object) -> Stack:
    configs = [cell(method, seed=seed, lag=seed % 3, **more) for seed, method in enumerate(methods)]
    return Stack([build_trainer(config) for config in configs])


def columns(stack: Stack, updates: int) -> list[Mapping[str, list]]:
    for _ in range(updates):
        assert not [each.problem for each in stack.advance() if each.problem]
    return [recorded(trainer) for trainer in stack.trainers]


def check(ours: list[Mapping[str, list]], theirs: list[Mapping[str, list]], tolerance: float) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert one.keys() == other.keys()
        for name, values in one.items():
            if all(isinstance(value, float | None) for value in values):
                numbers = [np.array(each, float) for each in (values, other[name])]  # null is nan
                np.testing.assert_allclose(*numbers, rtol=tolerance, atol=tolerance, err_msg=name)
            elif name != "samples.parquet/log_ratios":  # text with six digits
                assert values == other[name], name


CASES = [
    (["vcpo", "vcpo", "vcpo+entropy(beta=0.02)"], {}),
    (["reinforce+gac", "clip", "reinforce+gac(high=0.1)"], {"record": "diagnostics"}),
    (["vcpo", "vcpo"], {"record": "full"}),
]


@pytest.mark.parametrize("updates", [6, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("methods", "more"), CASES)
def test_it_records_what_the_way_of_a_cpu_does(
    methods: list[str], more: dict[str, object], updates: int, request: pytest.FixtureRequest
) -> None:
    expected = columns(stack_of(methods, **more), updates)
    request.getfixturevalue("batched")
    stack = stack_of(methods, **more)
    assert isinstance(stack.learner.passes, BatchedNormPasses) == ("vcpo" in methods)
    check(columns(stack, updates), expected, TOLERANCES[updates])


def test_norms_and_gradients_of_cells_of_every_kind() -> None:
    """One coefficient for each trajectory, one for each token, a bonus, none, and coefficients that are not numbers."""
    stack = stack_of(["vcpo"] * 5)
    learners, weights = stack.learner.learners, stack.weights
    policies = [each.policy for each in learners]
    generator = torch.Generator().manual_seed(0)
    E, P, B, T = 5, 2, 8, 12
    V, L = (weights.tensors[name].shape[1] for name in ("tokens.weight", "positions.weight"))
    prompts = torch.randint(V, (E, P, L - T), generator=generator)
    responses = torch.randint(V, (E, B, T), generator=generator)
    mask = torch.arange(T) < torch.randint(1, T + 1, (E, B, 1), generator=generator)
    rows = torch.randn(P, B // P, 1, generator=generator).expand(P, B // P, T).contiguous()
    tokens = torch.randn(P, B // P, T, generator=generator)
    scale = torch.ones(())
    answers = [
        Update(coefficients=rows, step_scale=scale),
        Update(coefficients=tokens, step_scale=scale),
        Update(coefficients=rows, step_scale=scale, entropy_coefficients=0.1 * tokens),
        ValueError("this cell has no answer"),
        Update(coefficients=rows * math.nan, step_scale=scale),
    ]
    found = []
    for passes in (NormPasses(policies, weights), BatchedNormPasses(policies, weights)):  # type: ignore[arg-type]
        weights.clear_gradients()
        scores, norms = passes.score(Responses(prompts, responses, mask))
        passes.backward(answers)
        assert norms is not None
        found.append([scores.logp, norms, *(gradient.clone() for gradient in weights.gradients())])
    assert len(found[1]) == 2 + len(weights.tensors)
    for ours, theirs in zip(found[1], found[0], strict=True):
        assert ours.isfinite()[:4].all()
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5, equal_nan=True)
    assert not found[1][2][3].any()


def test_gradients_that_are_not_finite_are_kept_from_diagnostics() -> None:
    stacks = [stack_of(["reinforce+gac"] * 3, record="diagnostics") for _ in range(2)]
    generator = torch.Generator().manual_seed(0)
    answers = [Update(coefficients=torch.ones(2, 4, 12), step_scale=torch.ones(()))] * 3
    for turn in range(4):
        for tensor in stacks[0].weights.tensors.values():
            tensor.grad = torch.randn(tensor.shape, generator=generator)
            tensor.grad[1] = (math.nan, 1.0, 2.0, -math.inf)[turn]
        for ours, theirs in zip(stacks[1].weights.tensors.values(), stacks[0].weights.tensors.values(), strict=True):
            ours.grad = theirs.grad.clone()
        expected = learner.observe(stacks[0].weights, stacks[0].learner.learners, answers)
        measured, moves = StackedGradients(stacks[1].weights, stacks[1].learner.learners).observe(answers)
        assert moves == expected[1] == [True, turn != 2, True]  # cell 1 repeats its direction at the third turn
        for ours, theirs in zip(measured, expected[0], strict=True):
            assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6, nan_ok=True)
        assert bool(measured[1]) == (turn in (1, 2))
        for ours, theirs in zip(stacks[1].weights.gradients(), stacks[0].weights.gradients(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6, equal_nan=True)
        for ours, theirs in zip(stacks[1].learner.learners, stacks[0].learner.learners, strict=True):
            assert (ours.previous_gradient is None) == (theirs.previous_gradient is None)
            if ours.previous_gradient is not None:
                assert torch.equal(ours.previous_gradient, theirs.previous_gradient)


@pytest.mark.parametrize(
    ("method", "record"), [("vcpo", "basic"), pytest.param("reinforce+gac", "diagnostics", marks=pytest.mark.slow)]
)
def test_an_update_reads_from_the_device_as_often_for_any_number_of_cells(method: str, record: str) -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as elsewhere:
        few, many = (elsewhere.submit(stacked_on_mock.reads, method, record, cells).result() for cells in (2, 5))
    assert 0 < few == many
