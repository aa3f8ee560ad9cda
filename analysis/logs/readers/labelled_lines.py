"""Console lines with labels for people: `Step 3 | Reward 0.4 | ...` of prime-rl, and the results NeMo-RL lists."""

from __future__ import annotations

import re
from typing import NamedTuple

from vcpo_bench.analysis.logs.values import number

_STEP_LINE = re.compile(r"\bStep (\d+) \| (.+)$")
_HEADER = re.compile(r"(?<!=)={5,} (Epoch|Step) (\d+)(?:/(\d+))? ={5,}")
"""NeMo-RL counts steps within an epoch, `Step 3/100`, below `Epoch 2/4`; its asynchronous trainer has no epochs.

The look behind keeps a long line of `=` from being tried at each of its places."""
_TRAINING, _VALIDATION = "Training Results:", "Validation Results:"
_LABELLED = re.compile(r"\s*([A-Za-z].*?):? ([-+]?(?:\d|nan|inf)\S*)")
_BULLET = re.compile(r"^\s*[•*-] ([A-Z][\w .]*): (\S+)")


class LabelledRow(NamedTuple):
    """Values by label, and the step of the line."""

    step: float
    values: dict[str, float]


class LabelledLines:
    """Takes one line after another; remembers the step of the run that the headers of a list named."""

    def __init__(self) -> None:
        self._step: float | None = None
        self._epochs_done = 0.0
        self._listing = False

    def take(self, line: str) -> LabelledRow | None:
        """The values of a line; None where it holds none."""
        if (match := _STEP_LINE.search(line)) is not None:
            return LabelledRow(float(match.group(1)), _values(match.group(2).split(" | ")))
        if (match := _HEADER.search(line)) is not None:
            self._head(*match.groups())
        elif _TRAINING in line:
            self._listing = self._step is not None
        elif _VALIDATION in line:
            self._step, self._listing = self._step or 0.0, True  # before the first step: of the untrained policy
        elif self._listing and self._step is not None:
            bullet = _BULLET.match(line)
            if bullet is not None:
                values = _values([f"{bullet.group(1)}: {bullet.group(2)}"])
                return LabelledRow(self._step, values)
            self._listing = not line.strip()
        return None

    def _head(self, kind: str, count: str, whole: str | None) -> None:
        self._listing = False
        if kind == "Epoch":
            self._epochs_done = float(count) - 1
        else:
            self._step = float(count) + self._epochs_done * float(whole or 0)


def _values(parts: list[str]) -> dict[str, float]:
    """`Reward 0.4`, `Time: 3.1s`, `Trainable 60/64 (93.8%)` (a share) and `Truncation 1.5%` as numbers by label."""
    matches = filter(None, map(_LABELLED.match, parts))
    values = {match.group(1): _value(match.group(2)) for match in matches}
    return {label: value for label, value in values.items() if value is not None}


def _value(text: str) -> float | None:
    above, slash, below = text.rstrip("s%").partition("/")
    value, whole = number(above), number(below) if slash else 100.0 if text.endswith("%") else 1.0
    return value / whole if value is not None and whole else None
