"""The training loop of this project, under another name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.bench.trainers.own import Own


@dataclass(frozen=True, kw_only=True)
class Newcomer(Own):
    """Trains a cell as its parent does."""

    name: ClassVar[str] = "newcomer"
    summary: ClassVar[str] = "as own"
