"""How many threads were inside of a lock at once, at most."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


def most_inside(lock: Callable[[], AbstractContextManager[Any]]) -> int:
    """Four threads that enter a lock three times each.

    Args:
        lock: Makes the lock that a thread enters.
    """
    inside, most = [0], [0]

    def work() -> None:
        for _ in range(3):
            with lock():
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.002)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return most[0]
