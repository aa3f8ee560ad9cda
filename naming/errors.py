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
        shown = _abridged(repr(expression), 1 + position)
        text = f"{problem} (at character {position + 1} of {shown}, marked: {_abridged(self.marked(), self.position)})"
        super().__init__(_printable(text))

    def marked(self) -> str:
        """The expression with the offending place marked by `>>>`."""
        return f"{self.expression[: self.position]}>>>{self.expression[self.position :]}"


def _printable(text: str) -> str:
    """Line breaks and terminal escapes are spelled out."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _abridged(text: str, position: int) -> str:
    """At most 100 characters of a text before and after a position, `...` for the others."""
    begin, end = max(position - 100, 0), position + 100
    return f"{'...' if begin else ''}{text[begin:end]}{'...' if end < len(text) else ''}"


class ParameterError(UsageError):
    """A parameter has an illegal value or does not exist."""


class PluginError(UsageError):
    """A plug-in file or entry point could not be loaded."""
