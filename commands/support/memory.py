"""Recognizing that memory ran out, whichever library notices it."""

from __future__ import annotations

import errno

ADVICE = "there is not enough memory; raise the limit of this shell (ulimit -v) or of the job, or use another machine"
_TEXTS = ("failed to map segment", "Cannot allocate memory", "can't allocate memory", "Unable to allocate")


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that it was raised from, says that memory ran out, or too little may be used."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if any(text in str(error) for text in _TEXTS):
            return True
        error = error.__cause__ or error.__context__
    return False
