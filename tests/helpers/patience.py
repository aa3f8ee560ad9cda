"""Time limits of tests. A limit that holds on an ordinary machine would fail a good change on a slow one."""

import os


def within(seconds: float) -> float:
    """A limit in seconds: these, times `TEST_PATIENCE`, which .ci/run sets to how many times slower the machine is."""
    return seconds * float(os.environ.get("TEST_PATIENCE", "1"))
