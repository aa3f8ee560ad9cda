"""Text tasks whose policy may run Python: a fenced block is a call, and what it prints is inserted."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from vcpo_bench.bench.sandbox import check_installed, python_sandbox
from vcpo_bench.bench.tasks.environment import Kind
from vcpo_bench.bench.tasks.text.base import Item
from vcpo_bench.bench.tasks.text.dialogue import Dialogue
from vcpo_bench.bench.tasks.text.items.data_task import DataTask
from vcpo_bench.bench.tasks.text.items.rows import Row
from vcpo_bench.naming.parameters import integer

INSTRUCTION = (
    "You may use Python. A block between ```python and ``` is run as a program of its own, and what it prints is "
    'inserted after "Code execution result: ". Then go on.'
)
_BLOCK = re.compile(r"```(?:py|python)?\n(.*?)\n```", re.DOTALL)


class PythonDialogue(Dialogue):
    """Runs the first fenced block of a turn in the sandbox, in the format of SimpleTIR (arXiv 2509.02479).

    Args:
        turns: Most turns of an episode.
        output: Most characters of what is printed that are inserted; of a longer text, both ends.
        answered: See `Dialogue.answered`.
    """

    marks = "```"

    def __init__(self, turns: int, output: int, answered: Callable[[str], bool]) -> None:
        self.turns, self.output, self._answered = turns, output, answered

    @property
    def turn_limit(self) -> int:
        """The turns."""
        return self.turns

    def calls(self, text: str) -> bool:
        """A text with a finished block does."""
        return _BLOCK.search(text) is not None

    def reply(self, text: str) -> tuple[Kind, str]:
        """What the block prints; the call is malformed where the program fails."""
        found = _BLOCK.search(text)
        assert found is not None
        ended = python_sandbox().run(found[1])
        shown = f"\nCode execution result: {cut(ended.text.strip(), self.output)}\n"
        return "call" if ended.status == "ok" else "malformed", shown

    def answered(self, text: str) -> bool:
        """As the task says."""
        return self._answered(text)


def cut(text: str, longest: int) -> str:
    """The text, or its two ends around `...` where it has more than `longest` characters."""
    if len(text) <= longest:
        return text
    kept = longest - 3
    return f"{text[: kept - kept // 2]}...{text[len(text) - kept // 2 :]}"


@dataclass(frozen=True, kw_only=True)
class PythonTool(DataTask):
    """Questions of a data set with Python as a tool; a base class that stands before the one that has the data set.

    Attributes:
        turns: Most turns of an episode; one that has not answered by then earns 0.
        output: Most characters of a program's output that are inserted.
    """

    in_turns = True
    turns: int = integer(5, minimum=1, maximum=1000)
    output: int = integer(1000, minimum=16, maximum=10_000)

    @classmethod
    def check_installed(cls) -> None:
        """See `NamedTask.check_installed`."""
        check_installed()

    @classmethod
    def item_of(cls, row: Row) -> Item | None:
        """See `DataTask.item_of`; the question comes with the instruction for calls."""
        item = super().item_of(row)
        return None if item is None else item._replace(prompt=f"{item.prompt}\n{INSTRUCTION}")

    @property
    def dialogue(self) -> PythonDialogue:
        """The sandbox."""
        return PythonDialogue(self.turns, self.output, self.answered)

    @staticmethod
    @abstractmethod
    def answered(text: str) -> bool:
        """Whether a turn holds an answer, right or wrong."""
