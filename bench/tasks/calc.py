"""calc: add and multiply by running code, in a real sandbox."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcpo_bench.bench.sandbox import check_installed, python_sandbox
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks.environment import Reply, Turn
from vcpo_bench.bench.tasks.environment_task import EnvironmentTask
from vcpo_bench.bench.tasks.token_task import integers

_TOKENS = "0123456789+-*/()?=;:!"
_PLUS, _TIMES, _CALL, _ANSWER, _END, _MARK, _ERROR = (_TOKENS.index(token) for token in "+*?=;:!")

_RARE_SHARE = 0.02
"""Share of products among the demonstrations; of all other prompts it is a half."""

_LONGEST = 8  # tokens of a turn
_RESULT = 4  # characters of a result that is shown


@dataclass(frozen=True, kw_only=True)
class Calc(EnvironmentTask):
    """The prompt asks for the sum or the product of two numbers of two digits; a call runs an expression as Python.

    A turn `?EXPRESSION;` is a call: the environment prints the expression in the sandbox and inserts what comes out, at
    most four characters. A turn `=DIGITS;` is the answer. Any expression of digits, signs and parentheses is run. A
    prompt is hard if it asks for a product, which demonstrations hardly show. Needs `pydantic-monty`.
    """

    name = "calc"
    summary = "add or multiply numbers of two digits by a call that runs in a sandbox (an environment, 2 turns)"

    @classmethod
    def check_installed(cls) -> None:
        """See `NamedTask.check_installed`."""
        check_installed()

    @property
    def vocabulary(self) -> list[str]:
        """What an expression is made of, call, answer, end of a turn, end of the prompt, and the reply to nonsense."""
        return list(_TOKENS)

    @property
    def prompt_length(self) -> int:
        """Two digits, the sign, two digits, the mark."""
        return 6

    @property
    def turn_limit(self) -> int:
        """The call, the answer, and one to spare."""
        return 3

    @property
    def max_response(self) -> int:
        """Two calls with their results, and the answer."""
        return 2 * (_LONGEST + _RESULT) + _RESULT + 2

    def prompts(self, draws: NDArray[np.float64]) -> Tensor:
        """Numbers from 10 to 99, uniform; half of them are added and half multiplied."""
        return _written(draws, products=0.5)

    def hard(self, prompts: Tensor) -> Tensor:
        """It asks for a product, which demonstrations hardly show."""
        return prompts[:, 2] == _TIMES

    def shown(self, seed: int, batch: int, count: int) -> Tensor:
        """Prompts of which one in fifty asks for a product."""
        return self.apart(
            lambda k: _written(uniforms(seed, f"demonstrations {k}", batch, count, self.prompt_length), _RARE_SHARE)
        )

    def over(self, said: Sequence[int]) -> bool:
        """After `;`, and where a turn gets too long."""
        return said[-1] == _END or len(said) == _LONGEST

    def reply(self, prompt: Sequence[int], turns: Sequence[Turn], said: Sequence[int]) -> Reply:
        """What the expression prints, or `!` where that is no whole number or too long."""
        if said[-1] != _END or said[0] not in (_CALL, _ANSWER):
            return Reply("void", (_ERROR,))
        if said[0] == _ANSWER:
            return Reply("answer")
        shown = printed("".join(_TOKENS[token] for token in said[1:-1]))
        return Reply("call", tuple(map(_TOKENS.index, shown))) if shown else Reply("malformed", (_ERROR,))

    def right(self, prompt: Sequence[int], turns: Sequence[Turn]) -> bool:
        """The last turn is `=` with the digits of the result."""
        return turns[-1].said == (_ANSWER, *_result(prompt), _END)

    def script(self, prompt: Sequence[int], draws: Sequence[float]) -> list[Turn]:
        """Run the prompt, and answer with what came out."""
        result = _result(prompt)
        return [Turn((_CALL, *prompt[:-1], _END), result), Turn((_ANSWER, *result, _END), ())]


def _written(draws: NDArray[np.float64], products: float) -> Tensor:
    """Prompts int64 [B, 6] from uniform numbers [B, 6], this share of them products."""
    one, two = (10 + integers(draws[:, place], 90) for place in (0, 3))
    sign = torch.where(torch.from_numpy(draws[:, 2] < products), _TIMES, _PLUS)
    return torch.stack([one // 10, one % 10, sign, two // 10, two % 10, torch.full_like(one, _MARK)], dim=1)


def _result(prompt: Sequence[int]) -> tuple[int, ...]:
    """The digits of the right answer."""
    one, two = (10 * prompt[first] + prompt[first + 1] for first in (0, 3))
    return tuple(map(int, str(one * two if prompt[2] == _TIMES else one + two)))


def printed(expression: str) -> str:
    """What the sandbox prints of an expression: a whole number of at most four characters, else empty.

    Nothing but digits, signs and parentheses is run: other characters could end the `print`.
    """
    if not expression or not set(expression) <= set("0123456789+-*/()"):
        return ""
    ended = python_sandbox().run(f"print({expression})")
    shown = ended.text.strip() if ended.status == "ok" else ""
    return shown if shown.removeprefix("-").isdigit() and len(shown) <= _RESULT else ""
