"""Worker processes of this machine, under another name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.bench.running.schedulers.local import Local


@dataclass(frozen=True, kw_only=True)
class Newcomer(Local):
    """Runs cells as its parent does."""

    name: ClassVar[str] = "newcomer"
    summary: ClassVar[str] = "as local"
