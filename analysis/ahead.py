"""Reading thousands of small files: a few threads are a little ahead of who takes what they read."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")

_TOGETHER = 48
"""Items that a thread takes at a time: handing over each alone would cost as much as reading it."""
_MOST_THREADS = 4


def ahead(function: Callable[[_Item], _Found], items: Iterable[_Item]) -> Iterator[_Found]:
    """What a function says of each item, in their order.

    Threads help where most of its time is spent outside Python: opening, decompressing and checking files. Few results
    wait at a time, for together they might not fit in memory.

    Args:
        function: It may be called from other threads, for several items at once.
        items: What it is called with; a handful is not worth a thread.

    Raises:
        Exception: What the function raises, when the result of that item is asked for.
    """
    remaining = iter(items)
    chunks = iter(lambda: list(islice(remaining, _TOGETHER)), [])
    first = next(chunks, [])
    threads = min(_MOST_THREADS, os.cpu_count() or 1)
    if threads < 2 or len(first) < _TOGETHER:
        yield from map(function, first)
        yield from map(function, remaining)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="ahead") as pool:
        waiting: deque[Future[list[_Found]]] = deque([pool.submit(_each, function, first)])
        for chunk in chunks:
            waiting.append(pool.submit(_each, function, chunk))
            if len(waiting) > threads:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def _each(function: Callable[[_Item], _Found], items: list[_Item]) -> list[_Found]:
    return [function(item) for item in items]
