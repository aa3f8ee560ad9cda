"""Reading `--regime`: a name and its options, in one canonical spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from vcpo_bench.bench.regimes.random_lag import LAWS
from vcpo_bench.errors import UsageError

_FORM = re.compile(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", re.DOTALL)


class Option(NamedTuple):
    """One option of a regime: its default, its legal values in words, and its reader (`ValueError`: not legal)."""

    default: Any
    legal: str
    read: Callable[[str], Any]


def _word(*words: str) -> Option:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError
        return text

    return Option(words[0], " | ".join(words), read)


def _whole(default: int, minimum: int) -> Option:
    def read(text: str) -> int:
        value = int(text)
        if value < minimum:
            raise ValueError
        return value

    return Option(default, f"a whole number, {minimum} or more", read)


def _real(default: float, minimum: float = 0.0, below: float = float("inf")) -> Option:
    legal = f"a number from {minimum:g}" + (f" to below {below:g}" if below < float("inf") else "")

    def read(text: str) -> float:
        value = float(text)
        if not minimum <= value < below:
            raise ValueError
        return value

    return Option(default, legal, read)


def _read_noise(text: str) -> str:
    if text in ("off", "bf16", "int8"):
        return text
    sigma = float(text)
    if not 0 <= sigma < float("inf"):
        raise ValueError
    return f"{sigma:g}" if sigma else "off"


def _read_trace(text: str) -> tuple[int, ...]:
    """Lags written out as `[0 3 3 1]`, or a file of whole numbers separated by blanks, commas or lines."""
    if not text.startswith("["):
        try:
            text = Path(text).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--regime random(trace={text}): cannot be read ({error}); name a file of lags") from error
    lags = tuple(int(item) for item in re.split(r"[\s,]+", text.strip(" []\n")) if item)
    if not lags or min(lags) < 0:
        raise ValueError
    return lags


COMMON: dict[str, Option] = {
    "publish_every": _whole(1, 1),
    "engine_noise": Option("off", "off | bf16 | int8 | a standard deviation in nats", _read_noise),
}

OPTIONS: dict[str, dict[str, Option]] = {
    "fifo": {"fill": _word("ramp", "hold")},
    "minibatch": {"epochs": _whole(1, 1)},
    "inflight": {"every": _whole(0, 0), "cache": _word("keep", "recompute")},
    "random": {
        "law": _word(*LAWS),
        "mean": _real(0.0),
        "share": _real(0.1, below=1.0),
        "unit": _word("batch", "trajectory"),
        "trace": Option((), "a file of lags, or [0 3 3 1]", _read_trace),
    },
    "async": {
        "overflow": _word("wait", "drop"),
        "clock": _word("wall", "virtual"),
        "sampler": _real(0.0),
        "learner": _real(0.0),
        "straggler": _real(0.0, below=1.0),
        "slowdown": _real(10.0, minimum=1.0),
        "spread": _real(0.0),
        "slots": _whole(0, 0),
    },
    "replay": {"fraction": _real(0.5, below=1.0)},
}
"""Options of each regime beside the common ones; a value without a name is that of the first."""


SUMMARIES = {
    "fifo": "exactly k: consumption waits k updates",
    "minibatch": "0..k in turn: one rollout cut into k + 1 updates",
    "inflight": "k at the first token, less at later ones: weights change within a response",
    "random": "drawn from a law on 0..k, per batch or per trajectory",
    "async": "at most k: a sampler and a learner at the same time, or the same under a virtual clock",
    "replay": "0, and 1..k for the share that is re-used",
    "(all)": "options of every regime: weights published rarely; sampler and learner that disagree",
}
"""What lag a trajectory has, in a line."""


@dataclass(frozen=True)
class Regime:
    """A regime and its options.

    Attributes:
        name: Name of the regime.
        given: Options that differ from their defaults.
    """

    name: str
    given: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, option: str) -> Any:
        return self.given.get(option, (COMMON | OPTIONS[self.name])[option].default)

    @cached_property
    def canonical(self) -> str:
        """The one spelling of this regime: only what differs from the defaults, sorted."""
        inner = ",".join(f"{option}={_write(self.given[option])}" for option in sorted(self.given))
        return f"{self.name}({inner})" if inner else self.name

    def at(self, staleness: int) -> Regime:
        """The regime as it is at one lag: lag 0 is synchronous training whatever the regime, so it has one name."""
        if staleness:
            return self
        return Regime("fifo", {option: value for option, value in self.given.items() if option in COMMON})


def regime_names() -> list[str]:
    """Names of the regimes."""
    return list(OPTIONS)


def parse_regime(text: str) -> Regime:
    """The regime that an expression names: `fifo`, `random(two-point,share=0.2)`, `fifo(engine_noise=bf16)`.

    Raises:
        UsageError: The name, an option or a value is unknown or out of range; the message says what is legal.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"--regime {text!r}: not of the form NAME or NAME(option=value); {_known()}")
    name, inner = match.groups()
    if name not in OPTIONS:
        raise UsageError(f"--regime {name!r}: unknown regime; {_closest(name, regime_names())}{_known()}")
    options = OPTIONS[name] | COMMON
    given: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in (inner or "").split(","))):
        option, value = _assignment(name, part, options)
        if option in given:
            raise UsageError(f"--regime {text!r}: {option} is given twice; keep one")
        given[option] = _value(name, option, value, options[option])
    if "trace" in given:
        given["law"] = "trace"
    elif given.get("law") == "trace":
        raise UsageError("--regime random(trace): give the file, as in random(trace=lags.txt)")
    return Regime(name, {option: value for option, value in given.items() if value != options[option].default})


def _assignment(name: str, part: str, options: Mapping[str, Option]) -> tuple[str, str]:
    option, equals, value = (piece.strip() for piece in part.partition("="))
    if not equals:
        return next(iter(options)), option
    if option not in options:
        raise UsageError(
            f"--regime {name}: no option {option!r}; {_closest(option, list(options))}"
            f"its options: {', '.join(f'{key} ({known.legal})' for key, known in options.items())}"
        )
    return option, value


def _value(name: str, option: str, text: str, known: Option) -> Any:
    try:
        return known.read(text)
    except UsageError:
        raise
    except ValueError:
        legal = known.legal
        hint = _closest(text, legal.split(" | ")) if " | " in legal else ""
        raise UsageError(f"--regime {name}: {option}={text} is not legal; {hint}{option} is {legal}") from None


def _closest(word: str, known: list[str]) -> str:
    close = get_close_matches(word, known, n=2)
    return f"did you mean {' or '.join(close)}? " if close else ""


def _known() -> str:
    return f"regimes: {', '.join(regime_names())}"


def _write(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{' '.join(map(str, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)
