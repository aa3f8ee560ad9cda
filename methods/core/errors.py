"""What can go wrong between a user's method expression and its coefficients.

This room imports nothing of the project, so it has an error family of its own; the command line turns
`MethodError` into a one-line message and exit code 2.
"""


class MethodError(ValueError):
    """Root of the errors a method raises on purpose."""


class ExpressionError(MethodError):
    """A method expression cannot be understood.

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


class ParameterError(MethodError):
    """A parameter has an illegal value or does not exist."""


class BatchError(MethodError):
    """The tensors of a batch do not fit together."""


class MissingEvidence(MethodError):  # noqa: N818 - reads as what it is
    """A method needs evidence the batch does not carry (see `Method.needs`)."""


class NonFiniteEvidence(MethodError):  # noqa: N818 - reads as what it is
    """A token that carries loss, or a valid row, has a value that is not a number.

    Attributes:
        field: Name of the batch field.
        row: Indices of the first offending row, `(..., p, g)`.
    """

    def __init__(self, field: str, row: tuple[int, ...]) -> None:
        self.field = field
        self.row = row
        place = ", ".join(map(str, row))
        super().__init__(f"{field} is not finite on a valid token of row ({place}); skip the update or fix the sampler")


class PluginError(MethodError):
    """A plug-in file or entry point could not be loaded."""
