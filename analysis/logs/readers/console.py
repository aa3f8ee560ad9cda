"""Console output: verl's `step:N - name:value`, dictionaries of slime, TRL and SkyRL, and AReaL's tables.

Colors, carriage returns of progress bars and the prefixes of Ray are removed first.
"""

from __future__ import annotations

import re
from pathlib import Path

from vcpo_bench.analysis.logs.not_yet import NotYetError
from vcpo_bench.analysis.logs.rows import Rows

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_VERL = re.compile(r"(?:^|[\s|])step:(\d+) - (.+:.+)$")
_DICT = re.compile(r"\{['\"]")
_TITLE = re.compile(r"\b(rollout|step|eval)\s+(\d+)\s*:\s*$")
_LONGEST_TITLE = 100
_PAIR = re.compile(r"['\"]([^'\"]+)['\"]\s*:\s*['\"]?((?:[\w.]*\()?[-+]?[\w.+-]+\)?)['\"]?\s*(?=[,}])")
_REPEATED = ("Initial validation metrics:", "Final validation metrics:")
"""What verl prints without a step of evaluations that its logger has printed with one."""
_AREAL_STEP = re.compile(r"Train step (\d+)/\d+ done")
_RAY = re.compile(r"^\s*\([A-Za-z_][\w.]* pid=\d+(?:, ip=[\d.]+)?\)\s?")


def read_console(path: Path, rows: Rows) -> None:
    """Read every line that holds metrics; everything else is skipped.

    Raises:
        UsageError: No line holds metrics.
    """
    reader = _Console(rows, path.name)
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        for line in file:
            if "\r" in line or "\x1b" in line:
                for part in _ANSI.sub("", line).split("\r"):
                    reader.take(part)
            else:
                reader.take(line)
    if not reader.found:
        raise NotYetError(
            f"{path}: no line holds metrics as verl, TRL, slime, SkyRL or AReaL print them; give the file of a logger"
        )


class _Console:
    """Takes one line after another and remembers the step that AReaL prints above its tables."""

    def __init__(self, rows: Rows, file: str) -> None:
        self.rows, self.file, self.found = rows, file, 0
        self._areal_step: float | None = None
        self._dict_axes: set[str] = set()

    def take(self, line: str) -> None:
        """Read one line without its color codes."""
        text = _RAY.sub("", line.rstrip("\n")) if line[:1] in "( " else line.rstrip("\n")
        if "step:" in text and self._verl(text):
            return
        if "{" in text and self._dictionary(text):
            return
        if "Train step" in text:
            step = _AREAL_STEP.search(text)
            if step:
                self._areal_step = float(step.group(1))
        elif "│" in text and self._areal_step is not None:
            self._table(text)

    def _verl(self, text: str) -> bool:
        match = _VERL.search(text)
        if match is None:
            return False
        row = {}
        for part in match.group(2).split(" - "):
            name, colon, value = part.rpartition(":")
            if colon:
                row[name.strip()] = value
        self._add(row, float(match.group(1)), "step")
        return True

    def _dictionary(self, text: str) -> bool:
        match, end = _DICT.search(text), text.rfind("}") + 1
        if match is None or end < match.end() or any(said in text for said in _REPEATED):
            return False
        row = dict(_PAIR.findall(text, match.start(), end))
        if not row:
            return False
        title = _TITLE.search(text[max(match.start() - _LONGEST_TITLE, 0) : match.start()])
        if title is not None:
            axis = "rollout/step" if title.group(1) in ("rollout", "eval") else "train/step"
            self._add(row, float(title.group(2)), axis)
        else:
            self._add(row, None, "")
        return True

    def _table(self, text: str) -> None:
        cells = [cell.strip() for cell in text.strip().strip("│").split("│")]
        if len(cells) % 2 == 0:
            self._add(dict(zip(cells[::2], cells[1::2], strict=True)), self._areal_step, "train step")

    def _add(self, row: dict[str, str], step: float | None, axis: str) -> None:
        self.found += 1
        if step is None:
            self.rows.add(row, self.file)
        else:
            self.rows.add(row, self.file, step, axis)
