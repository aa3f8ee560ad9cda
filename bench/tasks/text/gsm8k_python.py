"""gsm8k-python: grade-school word problems with Python as a tool."""

from dataclasses import dataclass

from vcpo_bench.bench.tasks.text.gsm8k import Gsm8k, marked_number
from vcpo_bench.bench.tasks.text.python_tool import PythonTool


@dataclass(frozen=True, kw_only=True)
class Gsm8kPython(PythonTool, Gsm8k):
    """As `gsm8k`, over several turns: a fenced block of Python ends a turn, and the next one begins with its output.

    The answer counts in the turn that the policy ends itself. Needs `pydantic-monty`.
    """

    name = "gsm8k-python"
    summary = "gsm8k with Python as a tool, over several turns (an environment)"
    sample = "gsm8k"

    @staticmethod
    def answered(text: str) -> bool:
        """A number stands after `####`."""
        return marked_number(text) is not None
