"""Console output: verl's `step:N - name:value`, dictionaries, pasted tables, labelled lines, and AReaL's boxes.

Colors, carriage returns of progress bars and the prefixes of Ray are removed first. A row without a step is of
the update that the last progress bar showed.
"""

from __future__ import annotations

import re
from pathlib import Path

from vcpo_bench.analysis.logs.errors import NotYetError
from vcpo_bench.analysis.logs.names import step_names
from vcpo_bench.analysis.logs.readers.labelled_lines import LabelledLines
from vcpo_bench.analysis.logs.rows import LogRows
from vcpo_bench.analysis.logs.values import encoding_of, number

_LEAST = 3
"""Cells of a row: a step and two values."""


class PastedTable:
    """Takes the lines of a text one after another and gives those that are rows below a header."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def take(self, line: str) -> dict[str, str]:
        """The row that a line holds; empty for a header, a rule, and lines that are no part of a table."""
        cells = [cell.strip() for cell in line.strip().strip("|").split("\t" if "\t" in line else "|")]
        if len(cells) < _LEAST:
            return {}
        numbers = sum(number(cell) is not None for cell in cells)
        if not numbers and any(cell in step_names() for cell in cells):
            self._names = [cell.replace(" / ", "/") for cell in cells]  # notebooks show names with spaces
        elif numbers and len(cells) == len(self._names):
            return {name: cell for name, cell in zip(self._names, cells, strict=True) if name and cell}
        return {}


_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_VERL = re.compile(r"(?:^|[\s|])step:(\d+) - (.+:.+)$")
_DICT = re.compile(r"\{['\"]")
_TITLE = re.compile(r"\b([a-z_]+)\s+(\d+)(?:, eval_metrics)?\s*:\s*$", re.IGNORECASE)
_LONGEST_TITLE = 100
_AXES = {
    "rollout": "rollout/step",
    "eval": "rollout/step",
    "perf": "rollout/step",
    "step": "train/step",
    "global step": "train/global_step",
    "at step": "train/global_step",
    "global_step": "train/global_step",
}
"""What the title of a dictionary counts: slime prints `rollout 3: {...}`, OpenRLHF `Global step 3: {...}`.

OpenRLHF's evaluations: `Eval at step 3: {...}` if asynchronous, else `..., global_step 3, eval_metrics: {...}`.
"""
_PAIR = re.compile(
    r"['\"]([^'\"]+)['\"]\s*:\s*['\"]?((?:[\w.]*\()?[-+]?[\w.+/-]+(?:,\s*\w+=[^(){},]*)*\)?)['\"]?\s*(?=[,}])"
)
"""A name and a number: bare, quoted, or as `np.float64(0.2)` and `tensor(0.5, device='cuda:0')`."""
_REPEATED = ("Initial validation metrics:", "Final validation metrics:")
"""What verl prints without a step of evaluations that its logger has printed with one."""
_BAR = re.compile(r"^\s*\d+%\|[^|]*\|\s*(\d+)/(\d+) \[")
BAR = "progress bar"
"""The axis of steps that were read from a progress bar."""
_AREAL_STEP = re.compile(r"Train step (\d+)/\d+ done")
_CARRIER = re.compile(
    r"^(?:\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d) (?:std(?:out|err) [FP] )?|\[?rank\d+\]?: ?|\d+: )"
)
"""What a container, torchrun or srun puts before each line."""
_CARRIED = tuple("0123456789[r")
_RAY = re.compile(r"^\s*\([A-Za-z_][\w.]* pid=\d+(?:, ip=[\d.]+)?\)\s?")
_LONGEST_DICT = 50_000
"""Characters of a dictionary that is printed over several lines."""


def read_console(path: Path, rows: LogRows) -> None:
    """Read every line that holds metrics; everything else is skipped.

    Raises:
        UsageError: No line holds metrics.
    """
    reader = _Console(rows, path.name)
    with path.open(encoding=encoding_of(path), errors="replace", newline="") as file:
        for line in file:
            if "\r" in line or "\x1b" in line:
                for part in _ANSI.sub("", line).split("\r"):
                    reader.take(part)
            else:
                reader.take(line)
    if not reader.found:
        raise NotYetError(
            f"{path}: no line holds metrics as a known trainer prints them; give the file that yours writes: "
            "trainer_state.json of TRL, logging.jsonl of ms-swift, metrics.jsonl of prime-rl, tinker-cookbook or "
            "Twinkle, steps.jsonl of Baseten, the file logger of verl, and of others TensorBoard or a CSV export"
        )


class _Console:
    """Takes one line after another and remembers what stands above a row: a step, the header of a table, half a row."""

    def __init__(self, rows: LogRows, file: str) -> None:
        self.rows, self.file, self.found = rows, file, 0
        self._areal_step: float | None = None
        self._bar: float | None = None
        self._longest_bar = 0
        self._open = ""
        self._behind_bars: dict[frozenset[str], tuple[float, float]] = {}
        self._pasted = PastedTable()
        self._labelled = LabelledLines()

    def take(self, line: str) -> None:
        """Read one line without its color codes."""
        text = line.rstrip("\n")
        if text.startswith(_CARRIED):
            text = _CARRIER.sub("", text, count=1)
        if text[:1] in "( ":
            text = _RAY.sub("", text)
        if "%|" in text:
            self._look_at_bar(text)
        if "step:" in text and self._verl(text):
            return
        if (self._open or "{" in text) and self._dictionary(text):
            return
        if (labelled := self._labelled.take(text)) is not None:
            if labelled.values:
                self.found += 1
                self.rows.add(labelled.values, self.file, labelled.step, "step")
            return
        if "Train step" in text:
            step = _AREAL_STEP.search(text)
            if step:
                self._areal_step = float(step.group(1))
        elif "│" in text and self._areal_step is not None:
            self._table(text)
        elif ("|" in text or "\t" in text) and (row := self._pasted.take(text)):
            self._add(row, None, "")

    def _look_at_bar(self, text: str) -> None:
        """Remember how far training is; a shorter bar without a title is of an evaluation."""
        bar = _BAR.match(text)
        if bar is not None and int(bar.group(2)[:9]) >= self._longest_bar:
            self._bar, self._longest_bar = float(bar.group(1)), int(bar.group(2)[:9])

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
        """Read a dictionary of one line, or one line more of one that is open."""
        whole = text if _DICT.search(text) else f"{self._open}{text}"
        self._open = ""
        match, end = _DICT.search(whole), whole.rfind("}") + 1
        if match is None or any(said in whole for said in _REPEATED):
            return False
        if end < match.end():
            self._open = whole if whole.rstrip().endswith(",") and len(whole) < _LONGEST_DICT else ""
            return bool(self._open)
        row = dict(_PAIR.findall(whole, match.start(), end))
        if not row:
            return False
        begin = max(match.start() - _LONGEST_TITLE, 0)
        step, axis = self._titled(whole[begin : match.start()])
        self._add(row, step, axis)
        return True

    def _titled(self, title: str) -> tuple[float | None, str]:
        """The step and the axis that the text before a dictionary names."""
        named = _TITLE.search(title)
        if named is not None:
            before = title[: named.start()].split()[-1:]
            for word in (" ".join([*before, named.group(1)]), named.group(1)):
                if word.lower() in _AXES:
                    return float(named.group(2)), _AXES[word.lower()]
        return (self._bar, BAR) if self._bar is not None else (None, "")

    def _table(self, text: str) -> None:
        cells = [cell.strip() for cell in text.strip().strip("│").split("│")]
        if len(cells) % 2 == 0:
            self._add(dict(zip(cells[::2], cells[1::2], strict=True)), self._areal_step, "train step")

    def _add(self, row: dict[str, str], step: float | None, axis: str) -> None:
        self.found += 1
        if axis == BAR and step is not None:
            step = self._bar_step(row, step)
        if step is None or (axis == BAR and self.rows.names_a_step(row)):
            self.rows.add(row, self.file)
        else:
            self.rows.add(row, self.file, step, axis)

    def _bar_step(self, row: dict[str, str], bar: float) -> float:
        """The update of a row: that of the bar, or one spacing later where no bar was printed since a row like it."""
        names = frozenset(row)
        last, spacing = self._behind_bars.get(names, (0.0, bar))
        step = bar if bar > last or bar < last - spacing else last + spacing
        self._behind_bars[names] = step, step - last if step > last else spacing
        return step
