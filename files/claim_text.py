"""What a claim says: who holds it, a count of heartbeats, and a note. It always has the same size in bytes."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from vcpo_bench.files.lock_holders import Holder

SIZE = 1024


@dataclass(slots=True)
class Claimed:
    """A claim.

    Attributes:
        holder: The process that holds it.
        job: Name of the scheduler's job it runs in; empty: none.
        beat: Number of heartbeats so far.
        note: What the holder publishes.
        released: Whether the holder has given it back.
    """

    holder: Holder
    job: str = ""
    beat: int = 0
    note: dict[str, Any] = field(default_factory=dict)
    released: bool = False

    @classmethod
    def read(cls, text: str) -> Claimed | None:
        """What `text` wrote; None for anything else, such as a text that is just being replaced."""
        with suppress(ValueError, TypeError, KeyError):
            values = json.loads(text)
            found = cls(
                Holder(**values["holder"]),
                str(values["job"]),
                int(values["beat"]),
                dict(values["note"]),
                bool(values.get("released", False)),
            )
            return found if isinstance(found.holder.pid, int) else None
        return None

    def bytes(self) -> bytes:
        """The text, padded; a note that does not fit is left out. One write replaces it in place."""
        values = asdict(self)
        text = json.dumps(values).encode()
        if len(text) > SIZE:
            text = json.dumps(values | {"note": {}}).encode()
        return text.ljust(SIZE)
