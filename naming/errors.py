"""What can be wrong with an expression, a parameter or a plug-in: each a `UsageError`, one line and exit code 2."""

from vcpo_bench.errors import UsageError


class ExpressionError(UsageError):
    """An expression cannot be understood.

    Attributes:
        expression: The whole text.
        position: Zero-based index of the character the problem starts at.
        problem: What is wrong there, without the pointer.
    """

    def __init__(self, expression: str, position: int, problem: str) -> None:
        self.expression = expression
        self.position = position
        self.problem = problem
        super().__init__(f"{problem} (at character {position + 1} of {expression!r}, marked: {self.marked()})")

    def marked(self) -> str:
        """The expression with the offending place marked by `>>>`."""
        return f"{self.expression[: self.position]}>>>{self.expression[self.position :]}"


class ParameterError(UsageError):
    """A parameter has an illegal value or does not exist."""


class PluginError(UsageError):
    """A plug-in file or entry point could not be loaded."""
