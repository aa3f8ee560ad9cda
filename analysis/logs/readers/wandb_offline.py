"""Offline `.wandb` files, read by wandb's own `wandb leet inspect`, which recovers what a crashed run left."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from vcpo_bench.analysis.logs.errors import NotYetError
from vcpo_bench.analysis.logs.readers.jsonl import flat
from vcpo_bench.analysis.logs.rows import LogRows
from vcpo_bench.errors import UsageError, how_to_install


def read_wandb(path: Path, rows: LogRows) -> None:
    """Read the history of one file.

    Raises:
        UsageError: wandb is not installed, is too old, or cannot read the file.
    """
    program = _program()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        command = [program, "leet", "inspect", str(path), "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True, errors="replace") as running:
            assert running.stdout is not None
            count = _take_history(running.stdout, path, rows)
        said.seek(0)
        complaints = [line.strip() for line in said if line.strip()]
    reason = complaints[-1].removeprefix("wandb leet inspect: ") if complaints else ""
    if running.returncode and not count:
        raise NotYetError(f"{path}: wandb cannot read it ({reason or f'exit code {running.returncode}'})")
    if reason:
        rows.notes.append(f"{path.name}: {count} rows were recovered; {reason}")
    if not count:
        raise NotYetError(f"{path} holds no history row; the run logged nothing, or nothing reached the disk")


def _take_history(lines: IO[str], path: Path, rows: LogRows) -> int:
    count = 0
    for line in lines:
        if '"history"' not in line:
            continue
        try:
            item = json.loads(line)["history"]["item"]
        except (ValueError, RecursionError, KeyError, TypeError):
            rows.add_bad_line(path.name)
            continue
        rows.add(flat(item), path.name)
        count += 1
    return count


def _program() -> str:
    beside = Path(sys.executable).with_name("wandb")
    found = str(beside) if beside.exists() else shutil.which("wandb")
    if found is None:
        raise UsageError(f"a .wandb file is read with wandb 0.31 or newer: {how_to_install('wandb')}")
    return found
