"""What other trainers call what we record: the files of `frameworks/` as objects, and which of them wrote a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

from vcpo_bench.analysis.logs.errors import NotYetError
from vcpo_bench.analysis.logs.patterns import Patterns, any_fits, fits
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.grammar import unknown_name

Tag = Literal["exact", "truncated", "other", "proxy"]
Transform = Literal["", "log", "minus_one", "one_minus"]

AUTO = "auto"
STEP = "step"
"""In a mapping beside our columns: the name that holds the step of a row."""
FRAMEWORKS = Path(__file__).with_name("frameworks")
"""One file per framework."""
CLOCK = "seconds"
"""Our column that several processes of one run may each log, under one name."""
_MARKER_WEIGHT = 3
_REWARDS = ("reward", "score", "return", "accuracy")
"""Parts of names that may mean a reward, the likeliest first."""


@dataclass(frozen=True)
class LogColumn:
    """A column of ours that a foreign log can fill.

    Attributes:
        name: As in our recorded tables, where they have it.
        unit: Of its values.
        label: For people.
        floor: Smallest spread it is given when compared with its own history: unit, or nats if `log`.
        log: Whether it is compared on a logarithmic axis.
        short: For people, where the label is long for a sentence of several signals.
    """

    name: str
    unit: str
    label: str
    floor: float
    log: bool = False
    short: str = ""


@dataclass(frozen=True)
class Name:
    """A foreign name and what it holds.

    Attributes:
        pattern: The name; `*` matches anything.
        column: Our column.
        tag: `exact`: the same quantity. `truncated`: after a clamp, truncation or mask. `other`: another estimator or
            other policies. `proxy`: only related.
        sign: -1 where the framework logs the opposite sign.
        transform: Applied after the sign: `log`, `minus_one` (value - 1), or `one_minus` (1 - value).
        unit: As logged, where it is not the column's.
        without: Patterns of names that match and are not meant.
        source: Where the meaning was read.
    """

    pattern: str
    column: str
    tag: Tag
    sign: int = 1
    transform: Transform = ""
    unit: str = ""
    without: tuple[str, ...] = ()
    source: str = ""

    def matches(self, name: str) -> bool:
        """Whether a logged name, without the framework's prefix, is this one."""
        return fits(self.pattern, name) and not any(fits(one, name) for one in self.without)


@dataclass(frozen=True)
class Framework:
    """A trainer whose logs can be read.

    Attributes:
        name: As given to `--framework`.
        title: For people.
        source: Version whose sources were read.
        step: What one step of its log is.
        markers: Patterns of names that only it logs.
        inherited: Markers it shares, as with the one it is a fork of: they count once one of its own is there.
        prefixes: Removed from a name before it is looked up.
        names: Foreign names, the preferred one of a column first.
        switches: Our column to the setting that makes the framework log it.
    """

    name: str
    title: str
    source: str
    step: str
    markers: tuple[str, ...]
    inherited: tuple[str, ...]
    prefixes: tuple[str, ...]
    names: tuple[Name, ...]
    meanings: tuple[tuple[str, tuple[Name, ...]], ...]
    switches: Mapping[str, str]

    def bare(self, name: str) -> str:
        """A logged name without the framework's prefix."""
        for prefix in self.prefixes:
            if name.startswith(prefix):
                return name.removeprefix(prefix)
        return name

    def names_beside(self, logged: Iterable[str]) -> tuple[Name, ...]:
        """The names of this framework, where those with two meanings are resolved by what is logged beside them."""
        bare = {self.bare(name) for name in logged}
        for pattern, names in self.meanings:
            if not pattern or any_fits(pattern, bare):
                return self.names + names
        return self.names

    def score(self, logged: Iterable[str]) -> int:
        """How much a set of names looks like this framework's: markers count three times a shared name."""
        bare = {self.bare(name) for name in logged}
        marked = _count_marks(self.markers, bare)
        if not marked:
            return 0
        marked += _count_marks(self.inherited, bare)
        known = {one.column for one in self.names if any_fits(one.pattern, bare, one.matches)}
        return _MARKER_WEIGHT * marked + len(known)


def columns() -> dict[str, LogColumn]:
    """Every column a foreign log can fill, by name."""
    return {name: LogColumn(name, **facts) for name, facts in _data()["columns"].items()}


def step_names() -> tuple[str, ...]:
    """Names that hold the step of a row, the most trusted first."""
    return tuple(_data()["steps"])


def same_steps() -> dict[str, str]:
    """Names of a step that count what another name of a step counts."""
    return dict(_data()["same_steps"])


@cache
def frameworks() -> dict[str, Framework]:
    """Every framework by name."""
    return {name: _framework(name, facts) for name, facts in _facts().items()}


def find_framework(wanted: str, logged: Iterable[str], guess: bool = True) -> Framework | None:
    """The framework that wrote these names.

    Args:
        wanted: A name of `frameworks()`, or `"auto"`.
        logged: Names found in the log.
        guess: Whether an unknown log is an error; False where the user mapped the names.

    Returns:
        None where none fits and `guess` is False.

    Raises:
        UsageError: The name is unknown, or no framework, or more than one, fits the names found.
    """
    known = frameworks()
    if wanted != AUTO:
        check_wanted(wanted, ())
        return known[wanted]
    found = sorted(set(logged))
    telling = [name for name in found if _every_pattern().may_fit(name)]
    scores = {name: framework.score(telling) for name, framework in known.items()}
    best = max(scores.values(), default=0)
    leaders = [name for name, score in scores.items() if score == best and best > 0]
    if len(leaders) == 1:
        return known[leaders[0]]
    if not guess:
        return None
    shown = ", ".join(found[:12]) + (f" and {len(found) - 12} more" if len(found) > 12 else "")
    if leaders:
        raise NotYetError(f"the names fit {' and '.join(leaders)} equally well; choose one with --framework")
    likely = next((name for word in _REWARDS for name in found if word in name.lower()), "KEY")
    raise NotYetError(
        f"no known framework logs these names: {shown or 'none found'}; say which one is the reward, such as "
        f"--map reward={likely}"
    )


def check_wanted(framework: str, mapping: Iterable[str]) -> None:
    """Raise `UsageError` where a framework or one of our columns does not exist."""
    if framework != AUTO and framework not in frameworks():
        raise UsageError(unknown_name("framework", framework, frameworks()))
    if unknown := sorted(set(mapping) - set(columns()) - {STEP}):
        raise UsageError(f"--map {unknown[0]}=...: no such column; choose one of {STEP}, {', '.join(columns())}")


def is_known_anywhere(name: str) -> bool:
    """Whether any framework maps this name: only such values are kept while a log is read."""
    return _every_name().may_fit(name) and any(
        one.matches(framework.bare(name)) for framework in frameworks().values() for one in _all_names(framework)
    )


def is_clock(name: str) -> bool:
    """Whether a name holds the time of a step."""
    return any(
        one.column == CLOCK and one.matches(framework.bare(name))
        for framework in frameworks().values()
        for one in framework.names
    )


def _all_names(framework: Framework) -> tuple[Name, ...]:
    return framework.names + tuple(name for _, names in framework.meanings for name in names)


def _framework(name: str, facts: Mapping[str, Any]) -> Framework:
    names = [_name(entry, facts["source"]) for entry in facts["names"]]
    parent: Mapping[str, Any] = _facts()[facts["extends"]] if "extends" in facts else {}
    names += [_name(entry, parent["source"]) for entry in parent.get("names", ())]
    names += [_name(entry, "this project") for entry in _data()["adapters"]]
    source = facts["source"] if "meanings" in facts else parent.get("source", "")
    meanings = tuple(
        (entry.get("when", ""), tuple(_name(one, source) for one in entry["names"]))
        for entry in facts.get("meanings", parent.get("meanings", ()))
    )
    return Framework(
        name=name,
        title=facts["title"],
        source=facts["source"],
        step=facts["step"],
        markers=tuple(facts["markers"]),
        inherited=(*parent.get("markers", ()), *facts.get("shared", ())),
        prefixes=tuple(facts["prefixes"]),
        names=tuple(names),
        meanings=meanings,
        switches={**parent.get("switches", {}), **facts["switches"]},
    )


def _count_marks(patterns: Iterable[str], names: Set[str]) -> int:
    return sum(any_fits(pattern, names) for pattern in patterns)


@cache
def _every_name() -> Patterns:
    """What any framework maps to a column of ours."""
    return Patterns.joined(
        (one.pattern for framework in frameworks().values() for one in _all_names(framework)), _prefixes()
    )


@cache
def _every_pattern() -> Patterns:
    """What tells frameworks apart: their names, their markers, and what decides between two meanings."""
    told = [
        pattern
        for framework in frameworks().values()
        for pattern in (*framework.markers, *framework.inherited, *(when for when, _ in framework.meanings))
    ]
    names = [one.pattern for framework in frameworks().values() for one in _all_names(framework)]
    return Patterns.joined([*told, *names], _prefixes())


def _prefixes() -> set[str]:
    return {prefix for framework in frameworks().values() for prefix in framework.prefixes}


def _name(entry: list[Any], source: str) -> Name:
    pattern, column, tag, *more = entry
    options = dict(more[0]) if more else {}
    return Name(pattern, column, tag, without=tuple(options.pop("without", ())), source=source, **options)


@cache
def _facts() -> dict[str, Any]:
    """What the files of `frameworks/` say, by framework."""
    files = sorted(FRAMEWORKS.glob("*.yaml"))
    return {file.stem: _read(file) for file in files}


@cache
def _data() -> dict[str, Any]:
    return _read(Path(__file__).with_name("names.yaml"))


def _read(file: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml.load(
        file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    return read
