"""No run trains on a held-out prompt, and half of the held-out prompts are hard where the task says what that is."""

from itertools import product

import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.tasks import TASKS, TokenTask, token_task
from vcpo_bench.bench.tasks.held_out import choose, draw_apart
from vcpo_bench.bench.tasks.text import text_task

TOKENS = [name for name, kind in TASKS.kinds.items() if issubclass(kind, TokenTask)]
SMALL = ["chain(2)", "chain(1)"]
TEXTS = [
    "arithmetic",
    "arithmetic(terms=2,largest=9)",
    "countdown",
    "gsm8k(data=sample)",
    "math(data=sample)",
    "calc-text",
]


def rows(tokens: Tensor) -> set[tuple[int, ...]]:
    return set(map(tuple, tokens.tolist()))


@pytest.mark.parametrize("expression", [*(name for name in TOKENS if name != "prefix-chain"), *SMALL])
def test_nothing_that_is_held_out_is_trained_on(expression: str) -> None:
    task = token_task(expression)
    held_out = rows(task.held_out())
    for seed in (0, 1, 7):
        for batch in range(100):
            assert not rows(task.training_prompts(seed, batch, 32)) & held_out
    assert not rows(task.demonstrations(0, 0, 3000).prompts) & held_out


@pytest.mark.parametrize("expression", TEXTS)
def test_no_question_that_is_held_out_is_trained_on(expression: str) -> None:
    task = text_task(expression)
    held_out = {item.prompt for item in task.items("held_out")}
    places = product(range(20), range(16), ("prompts", "demonstrations"))
    asked = {task.item(0, *place).prompt for place in places}
    assert not held_out & (asked | {item.prompt for item in task.items("train")})


def test_a_task_with_one_prompt_holds_nothing_out() -> None:
    """The prefix chain has nothing to read: it cannot be asked what was not trained on."""
    task = token_task("prefix-chain")
    assert torch.equal(task.held_out(4), task.training_prompts(0, 0, 4))


@pytest.mark.parametrize("expression", ["chain", "walk", "walk-eos", "lookup", "guess"])
def test_half_of_256_different_prompts_are_hard(expression: str) -> None:
    task = token_task(expression)
    held_out = task.held_out()
    hard = task.hard(held_out)
    assert hard is not None
    assert hard.tolist() == [False, True] * 128
    assert len(rows(held_out)) == 256
    every = task.hard(task.training_prompts(0, 0, 4000))
    assert every is not None
    assert 0.45 < float(every.double().mean()) < 0.6


def test_few_prompts_keep_three_quarters_for_training() -> None:
    task = token_task("chain(2)")
    assert task.held_out().shape == (256, 2)
    assert len(rows(task.held_out())) == 24
    assert len(rows(task.training_prompts(0, 0, 4000))) == 76


def test_choose_takes_first_occurrences() -> None:
    candidates = torch.tensor([[1], [1], [2], [3], [4], [5], [6], [7], [8]])
    assert choose(candidates, None, 9).tolist() == [[1], [2]]
    hard = candidates[:, 0] % 2 == 0
    assert choose(candidates, hard, 2).tolist() == [[1], [2]]
    assert choose(candidates, candidates[:, 0] > 9, 2).tolist() == [[1], [2]]  # none is hard


def test_a_row_that_is_held_out_comes_from_its_own_row_of_a_later_attempt() -> None:
    attempts = [torch.tensor([[1], [2], [3]]), torch.tensor([[2], [4], [9]]), torch.tensor([[5], [9], [9]])]
    assert draw_apart(torch.tensor([[1], [2]]), lambda k: attempts[k]).tolist() == [[5], [4], [3]]
