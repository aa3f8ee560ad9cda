"""What can be wrong with the evidence a method is given; errors of expressions and plug-ins are `naming.errors`."""

from vcpo_bench.errors import UsageError


class MethodError(UsageError):
    """Root of the errors a method raises on purpose."""


class BatchError(MethodError):
    """The tensors of a batch do not fit together."""


class MissingEvidence(MethodError):  # noqa: N818 - a name of the public API
    """A method needs evidence the batch does not carry (see `Method.needs`)."""


class NonFiniteEvidence(MethodError):  # noqa: N818 - a name of the public API
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


class EvidenceOrderError(MethodError):
    """A part or method reads a value of `EvidenceView` before it is known.

    Attributes:
        value: Name of the value.
        phase: The phase in which it was read, None outside an update.
        actor: Name of the part or method that read it.
    """

    def __init__(self, value: str, known_from: str, phase: str | None, actor: str) -> None:
        self.value = value
        self.phase = phase
        self.actor = actor
        where = f"{actor} reads {value} in the {phase} phase" if phase else f"{value} is read outside an update"
        super().__init__(f"{where}; it is known from the {known_from} phase on")
