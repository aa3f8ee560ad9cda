"""A log that says too little so far: a run that is still starting may write the rest."""

from __future__ import annotations

from vcpo_bench.errors import UsageError


class NotYetError(UsageError):
    """What was read holds no run so far; who follows the log waits, everyone else is told."""
