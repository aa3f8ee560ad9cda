"""Writes `docs/benchmarks/gpu.md` from what `tests/gpu/day.py` brought home: `python tools/gpu_page/page.py`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpu_page.machinery import equal, head, stacks
from gpu_page.models import estimate, norms, not_measured, samplers, training
from gpu_page.numbers import DOCS, measured

PAGE = DOCS / "benchmarks" / "gpu.md"


def page() -> str:
    """The page."""
    day = measured()
    parts = (head, equal, stacks, norms, estimate, samplers, training, not_measured)
    return "\n\n".join(part(day) for part in parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
