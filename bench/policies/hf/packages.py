"""The packages of the extra `hf`, which language models need and a plain installation lacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vcpo_bench.errors import UsageError, how_to_install


@contextmanager
def hf_packages() -> Iterator[None]:
    """Turn a failed import inside the block into one line that says what to install.

    Raises:
        UsageError: A package is missing.
    """
    try:
        yield
    except ImportError as error:
        raise UsageError(
            f"language models need more packages ({error.name} is missing): {how_to_install('hf')}"
        ) from error
