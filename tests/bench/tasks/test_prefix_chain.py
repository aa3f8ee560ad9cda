"""The task `prefix-chain`: how many zeros it allows, and what it refuses."""

import pytest
import torch

from vcpo_bench.bench.tasks import token_task
from vcpo_bench.bench.tasks.prefix_chain import PrefixChain
from vcpo_bench.errors import UsageError


@pytest.mark.parametrize(("H", "percent", "spare"), [(4, 51, 1), (10, 80, 2), (32, 90, 3), (1024, 99, 10)])
def test_as_many_zeros_are_spare_as_the_percentage_leaves(H: int, percent: int, spare: int) -> None:
    assert PrefixChain(H=H, percent=percent).spare == spare


def test_the_task_counts_ones_and_refuses_marks() -> None:
    task = token_task("prefix-chain(H=10,percent=80)")
    prompts, responses, mask = task.demonstrations(0, 0, 50)
    assert task.reward(prompts, responses, mask).eq(1).all()
    assert responses.sum(1).eq(8).all()
    assert len({tuple(row) for row in responses.tolist()}) > 20
    assert torch.equal(prompts, task.training_prompts(0, 3, 50))
    for token in (0, 2):
        worse = responses.clone()
        worse[torch.arange(50), responses.argmax(1)] = token
        assert task.reward(prompts, worse, mask).eq(0).all()
    assert task.render(prompts[0], torch.tensor([1, 0] * 5), mask[0]) == ": 1010101010"


@pytest.mark.parametrize("expression", ["prefix-chain(3)", "prefix-chain(H=2000)", "prefix-chain(percent=50)"])
def test_what_the_task_refuses(expression: str) -> None:
    with pytest.raises(UsageError, match="is not legal"):
        token_task(expression)
