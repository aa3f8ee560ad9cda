r"""math-python: competition problems with Python as a tool."""

from dataclasses import dataclass

from vcpo_bench.bench.tasks.text.base import Item
from vcpo_bench.bench.tasks.text.items.rows import Row
from vcpo_bench.bench.tasks.text.math import CompetitionMath
from vcpo_bench.bench.tasks.text.python_tool import INSTRUCTION, PythonTool
from vcpo_bench.bench.tasks.text.scoring.boxed import last_boxed


@dataclass(frozen=True, kw_only=True)
class MathPython(PythonTool, CompetitionMath):
    r"""As `math`, over several turns: a fenced block of Python ends a turn, and the next one begins with its output.

    The answer counts in the turn that the policy ends itself. Needs `pydantic-monty`.
    """

    name = "math-python"
    summary = "math with Python as a tool, over several turns (an environment)"
    sample = "math"

    @staticmethod
    def read(row: Row) -> Item | None:
        """As `math`, with the instruction for calls."""
        item = CompetitionMath.read(row)
        return None if item is None else item._replace(prompt=f"{item.prompt}\n{INSTRUCTION}")

    @staticmethod
    def answered(text: str) -> bool:
        """There is a box."""
        return last_boxed(text) is not None
