"""Files that another process has moved or removed in the meantime."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

_GONE = {errno.ENOENT, errno.ESTALE}


def is_missing(error: OSError) -> bool:
    """Whether something is gone; a network file system says so in its own way of what another machine removed."""
    return error.errno in _GONE


@contextmanager
def unless_missing() -> Iterator[None]:
    """Inside, what is gone is left out, with the rest of the block."""
    try:
        yield
    except OSError as error:
        if not is_missing(error):
            raise
