"""Checks of what every task in tokens promises, made on a few prompts before anything is trained on it."""

from __future__ import annotations

from vcpo_bench.bench.tasks.base import Demonstrations
from vcpo_bench.bench.tasks.token_task import TokenTask
from vcpo_bench.errors import UsageError
from vcpo_bench.lazy_torch import Tensor, torch

_COUNT = 4


def check_task(task: TokenTask, demonstrations: bool = False) -> None:
    """Check vocabulary, prompts and rewards of a task.

    Args:
        task: The task with its parameters.
        demonstrations: Whether to check those, too.

    Raises:
        UsageError: Something is not as `TokenTask` says; the message names what.
    """
    words, length, longest = task.vocabulary, task.prompt_length, task.max_response
    texts = isinstance(words, list) and all(isinstance(word, str) for word in words)
    _promise(task, texts and len(set(words)) == len(words) > 0, "vocabulary must be a list of texts, each once")
    lengths = (length, longest)
    _promise(task, all(type(one) is int and one > 0 for one in lengths), "its lengths must be integers above 0")
    _promise(task, task.eos is None or task.eos in range(len(words)), f"eos={task.eos} is no token of its vocabulary")
    prompts = task.training_prompts(0, 0, _COUNT)
    _check_tokens(task, "prompts", prompts, _COUNT, length)
    responses = (torch.arange(2 * _COUNT * longest) % len(words)).view(2 * _COUNT, longest)
    rewards = task.reward(prompts, responses, torch.ones_like(responses, dtype=torch.bool))
    _promise(
        task,
        isinstance(rewards, torch.Tensor) and rewards.is_floating_point() and rewards.shape == (2 * _COUNT,),
        f"reward returned {_words(rewards)} for {2 * _COUNT} responses; return float64 [{2 * _COUNT}]",
    )
    _promise(task, bool(torch.isfinite(rewards).all()), "reward returned a number that is not finite")
    if demonstrations:
        _check_demonstrations(task, task.demonstrations(0, 0, _COUNT))


def _check_demonstrations(task: TokenTask, shown: Demonstrations) -> None:
    prompts, responses, mask = shown
    _check_tokens(task, "prompts of demonstrations", prompts, _COUNT, task.prompt_length)
    _check_tokens(task, "responses of demonstrations", responses, _COUNT, task.max_response)
    wanted = isinstance(mask, torch.Tensor) and mask.dtype == torch.bool and mask.shape == responses.shape
    _promise(task, wanted, f"the mask of demonstrations is {_words(mask)}; return bool {list(responses.shape)}")


def _check_tokens(task: TokenTask, name: str, tokens: Tensor, rows: int, length: int) -> None:
    fits = isinstance(tokens, torch.Tensor) and tokens.dtype == torch.int64 and tokens.shape == (rows, length)
    _promise(task, fits, f"{name} are {_words(tokens)}; return int64 [{rows}, {length}] for {rows} rows")
    low, high, size = int(tokens.min()), int(tokens.max()), task.vocab_size
    _promise(task, 0 <= low <= high < size, f"{name} hold tokens {low} to {high}; its vocabulary has 0 to {size - 1}")


def _promise(task: TokenTask, kept: bool, text: str) -> None:
    if not kept:
        raise UsageError(f"task {task.canonical}: {text}")


def _words(value: object) -> str:
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
