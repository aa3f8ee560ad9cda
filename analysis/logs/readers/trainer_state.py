"""`trainer_state.json` of Hugging Face trainers: the newest checkpoint holds the whole history."""

from __future__ import annotations

import json
from pathlib import Path

from vcpo_bench.analysis.logs.errors import NotYetError
from vcpo_bench.analysis.logs.rows import LogRows
from vcpo_bench.analysis.logs.values import encoding_of, number


def read_trainer_state(path: Path, rows: LogRows) -> None:
    """Read `log_history`.

    Raises:
        UsageError: The file is damaged or has no history.
    """
    try:
        state = json.loads(path.read_text(encoding=encoding_of(path), errors="replace"))
    except (ValueError, RecursionError) as error:
        place = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise NotYetError(f"{path} is damaged{place}; give an earlier checkpoint") from None
    history = state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(history, list) or not history:
        raise NotYetError(f"{path} has no log_history; was the run stopped before its first log?")
    for row in history:
        if isinstance(row, dict):
            rows.add(row, path.name)
        else:
            rows.add_bad_line(path.name)
    every = number(state.get("logging_steps"))
    if every is not None and every > 1:
        rows.notes.append(
            f"each value is a mean over {every:g} updates without its NaNs: a NaN in between cannot be seen"
        )
