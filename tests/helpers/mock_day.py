"""A measurement of the GPU day on the mock device, for a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path


def gradient_error(method: str) -> float:
    """Relative error of an update's gradient on the mock device, where mixing devices raises."""
    import mock_gpu

    sys.path.insert(0, str(Path(__file__).parents[1] / "gpu"))
    from stages.equality import _gradient_error

    with mock_gpu.mocked():
        return _gradient_error(method, mock_gpu.NAME)
