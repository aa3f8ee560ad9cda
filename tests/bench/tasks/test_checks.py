"""What a task in tokens promises is checked before anything is trained on it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vcpo_bench.bench.tasks import Demonstrations, TokenTask, integers, token_task
from vcpo_bench.bench.tasks.checks import check_task
from vcpo_bench.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Echo(TokenTask):
    """Repeat three digits; `broken` says what it does wrong."""

    name = "echo"
    broken: ClassVar[str] = ""

    @property
    def vocabulary(self) -> list[str]:
        return ["a"] * 10 if self.broken == "vocabulary" else [str(digit) for digit in range(10)]

    @property
    def prompt_length(self) -> int:
        return 3

    @property
    def max_response(self) -> int:
        return 0 if self.broken == "length" else 3

    def prompts(self, draws: NDArray[np.float64]) -> torch.Tensor:
        drawn = integers(draws, 10)
        changed = {"shape": drawn[:, :1], "dtype": drawn.float(), "range": drawn + 50}
        return changed.get(self.broken, drawn)

    def reward(self, prompts: torch.Tensor, responses: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        right = (responses == prompts.repeat_interleave(len(responses) // len(prompts), 0)) & mask
        earned = right.all(1).double()
        changed = {"bool": right.all(1), "none": None, "per token": right.double(), "nan": earned * float("nan")}
        return changed.get(self.broken, earned)  # type: ignore[return-value]

    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        prompts = self.stream(seed, "demonstrations", batch, count)
        return Demonstrations(prompts, prompts, torch.ones(count, 3 - (self.broken == "mask"), dtype=torch.bool))


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("vocabulary", "vocabulary must be a list of texts, each once"),
        ("length", "its lengths must be integers above 0"),
        ("shape", "prompts are int64 [4, 1]; return int64 [4, 3] for 4 rows"),
        ("dtype", "prompts are float32 [4, 3]; return int64 [4, 3] for 4 rows"),
        ("range", "its vocabulary has 0 to 9"),
        ("bool", "reward returned bool [8] for 8 responses; return float64 [8]"),
        ("none", "reward returned NoneType for 8 responses; return float64 [8]"),
        ("per token", "reward returned float64 [8, 3] for 8 responses; return float64 [8]"),
        ("nan", "reward returned a number that is not finite"),
        ("mask", "the mask of demonstrations is bool [4, 2]; return bool [4, 3]"),
    ],
)
def test_a_broken_promise_is_named(broken: str, said: str) -> None:
    task = type("Broken", (Echo,), {"broken": broken})()
    with pytest.raises(UsageError) as caught:
        check_task(task, demonstrations=True)
    assert str(caught.value).startswith("task echo: ")
    assert str(caught.value).endswith(said)


@pytest.mark.parametrize("name", ["walk-eos", "chain(3)", "lookup", "guess"])
def test_the_tasks_here_keep_their_promises(name: str) -> None:
    check_task(token_task(name), demonstrations=True)
    check_task(Echo(), demonstrations=True)
