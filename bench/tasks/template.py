"""The texts of a new task and its test (`vcpo-bench new task NAME`)."""

MODULE = '''"""{title}: say here what a policy must learn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.tasks import Demonstrations, TokenTask, integers, per_response
from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.naming.parameters import integer


@dataclass(frozen=True, kw_only=True)
class {cls}(TokenTask):
    """The prompt is n digits; the response must be the same digits in reverse.

    Attributes:
        n: Number of digits.
    """

    name = "{name}"
    summary = "n digits; answer with the digits in reverse"
    n: int = integer(4, minimum=1, maximum=16)

    @property
    def vocabulary(self) -> list[str]:
        """The text of each token."""
        return [str(digit) for digit in range(10)]

    @property
    def prompt_length(self) -> int:
        """Tokens of a prompt, Lp."""
        return self.n

    @property
    def max_response(self) -> int:
        """Longest response in tokens, T; without an end token (`eos`) all responses are that long."""
        return self.n

    def prompts(self, draws: NDArray[np.float64]) -> Tensor:
        """Prompts int64 [B, Lp] from uniform numbers [B, Lp] in [0, 1)."""
        return integers(draws, 10)

    def reward(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
        """Rewards float64 [B] of responses [B, T]; the mask [B, T] is True at generated tokens."""
        answers = per_response(prompts.flip(1), len(responses))
        return ((responses == answers) & mask).all(1).double()

    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        """Prompts with correct answers, for `vcpo-bench lab warmup`."""
        prompts = self.stream(seed, "demonstrations", batch, count)
        return Demonstrations(prompts, prompts.flip(1), torch.ones(count, self.n, dtype=torch.bool))
'''

TEST = '''"""{title} rewards correct answers only, and a policy trains on it."""

import json
import subprocess
import sys
from pathlib import Path

import torch

from vcpo_bench.bench.tasks import token_task
from vcpo_bench.naming.plugins import load_plugin

FILE = Path(__file__).with_name("{module}.py")
if FILE.exists():  # beside its test it is a plug-in; in `bench/tasks/` it is found without
    load_plugin(FILE)


def test_only_the_digits_in_reverse_earn_the_reward() -> None:
    task = token_task("{name}(n=3)")
    responses = torch.tensor([[3, 2, 1], [1, 2, 3]])
    assert task.reward(torch.tensor([[1, 2, 3]]), responses, torch.ones(2, 3, dtype=torch.bool)).tolist() == [1, 0]


def test_demonstrations_earn_the_reward() -> None:
    task = token_task("{name}")
    assert task.reward(*task.demonstrations(0, 0, 100)).tolist() == [1] * 100


def test_a_policy_trains_on_it(tmp_path: Path) -> None:
    start, results = tmp_path / "start.safetensors", tmp_path / "results"
    command("lab warmup", "--out", start)
    short = ["--methods", "vcpo", "--staleness", 2, "--steps", 3, "--seeds", 1]
    command("run", "--start", start, "--out", results, *short)
    cells = [json.loads(path.read_text()) for path in results.glob("cells/*/cell.json")]
    assert cells
    assert {{cell["status"] for cell in cells}} == {{"completed"}}


def command(verb: str, *options: object) -> None:
    plugin = ["--plugin", str(FILE)] if FILE.exists() else []
    shared = ["--task", "{name}(n=3)", *plugin, *map(str, options)]
    subprocess.run([sys.executable, "-m", "vcpo_bench", *verb.split(), *shared], check=True)
'''
