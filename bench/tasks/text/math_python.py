r"""math-python: competition problems with Python as a tool."""

from dataclasses import dataclass

from vcpo_bench.bench.tasks.text.math import CompetitionMath
from vcpo_bench.bench.tasks.text.python_tool import PythonTool
from vcpo_bench.bench.tasks.text.scoring.boxed import last_boxed


@dataclass(frozen=True, kw_only=True)
class MathPython(PythonTool, CompetitionMath):
    """As `math`, over several turns: a fenced block of Python ends a turn, and the next one begins with its output.

    The answer counts in the turn that the policy ends itself. Needs `pydantic-monty`.
    """

    name = "math-python"
    summary = "math with Python as a tool, over several turns (an environment)"
    sample = "math"

    @staticmethod
    def answered(text: str) -> bool:
        """There is a box."""
        return last_boxed(text) is not None
