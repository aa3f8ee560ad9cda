"""The errors of this room."""

from vcpo_bench.errors import UsageError


class InexactError(UsageError):
    """Exact score norms are impossible for this model or call; the message says why, and what to change."""


class NotBatchedError(InexactError):
    """The hooks cannot tell the trajectories' gradients apart; one backward pass per trajectory can."""
