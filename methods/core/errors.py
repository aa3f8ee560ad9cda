"""What can be wrong with the evidence a method is given; errors of expressions and plug-ins are `naming.errors`."""

from vcpo_bench.errors import UsageError


class MethodError(UsageError):
    """Root of the errors a method raises on purpose."""


class BatchError(MethodError):
    """The tensors of a batch do not fit together."""


class MissingEvidence(MethodError):  # noqa: N818 - a name of the public API
    """A method needs evidence the batch does not carry (see `Method.needs`)."""


_SOURCES = {
    "version": "version is how many updates the weights that sampled each token had made; pass it with now",
    "score_norm_sq": "vcpo_bench.bench.score_norms.ScoreNorms measures score_norm_sq with one extra backward pass",
    "proximal_logp": "proximal_logp is logp at the first update on the batch",
    "vocabulary_logp": "vocabulary_logp is the log-probability of every token of the vocabulary, [P, G, T, V]",
    "behavior_vocabulary_logp": "behavior_vocabulary_logp is the same under the policy that sampled",
    "void_turn": "void_turn is recorded where a task has an environment (vcpo-bench run --task calc-text)",
    "reference_logp": "reference_logp is logp under the frozen reference policy",
}
"""Where evidence comes from that a training loop may not have at hand."""


def missing_evidence(method: str, names: list[str]) -> MissingEvidence:
    """The error for a batch without fields that a method needs: it names them and where they come from."""
    hints = "".join(f"; {_SOURCES[name]}" for name in names if name in _SOURCES)
    return MissingEvidence(f"{method} needs {', '.join(names)}; the batch does not carry it{hints}")


class NonFiniteEvidence(MethodError):  # noqa: N818 - a name of the public API
    """A token that carries loss, or a valid row, has a value that is not a number.

    Attributes:
        field: Name of the batch field.
        row: Indices of the first offending row, `(..., p, g)`.
        place: That row as the message names it; empty: by its indices.
    """

    def __init__(self, field: str, row: tuple[int, ...], place: str = "") -> None:
        self.field = field
        self.row = row
        of_row = field in ("reward", "score_norm_sq", "parameter_distance")
        where = f"{'in' if of_row else 'on a valid token of'} {place or f'row {row}'}"
        super().__init__(f"{field} is not finite {where}; skip the update or fix the sampler")


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
