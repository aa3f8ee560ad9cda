"""What must be known before cells are compared: repeats, versions, and settings that no scoreboard separates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from vcpo_bench import records
from vcpo_bench.errors import UsageError
from vcpo_bench.records.setting import settings_of
from vcpo_bench.records.settings import SETTINGS, LanguageModelSettings

_NAMES = sorted(SETTINGS, key=settings_of(LanguageModelSettings).__contains__)  # those of language models last
_APART = {name: SETTINGS[name] for name in _NAMES if SETTINGS[name].apart}

DEFAULTS = {name: one.default for name, one in _APART.items()}
"""Settings that no scoreboard separates, and the value of cells that do not name them."""

BUDGET = tuple(name for name, one in _APART.items() if one.apart == "budget")
"""Of these, the settings that decide what a run can reach: the comparison of methods keeps them apart."""


@dataclass(frozen=True)
class ComparisonNote:
    """Something to know before comparing cells.

    Attributes:
        text: A sentence.
        columns: Columns of the table of cells that it rests on.
        keys: Cells that it is about.
    """

    text: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]

    def __str__(self) -> str:
        """The sentence."""
        return self.text


def drop_repeats(cells: pd.DataFrame) -> tuple[pd.DataFrame, list[ComparisonNote]]:
    """One row per key: an ended cell over its own partial remains, the first folder over later ones."""
    ordered = cells.sort_values("partial", kind="stable")
    again = ordered["key"].duplicated() & ~ordered["partial"]
    kept = ordered.drop_duplicates("key").sort_index().reset_index(drop=True)
    if not again.any():
        return kept, []
    text = f"{int(again.sum())} cells are in more than one folder; each is read from the first."
    return kept, [ComparisonNote(text, ("key",), _keys(ordered[again]))]


def refuse_mixed_rules(cells: pd.DataFrame) -> None:
    """Refuse a table of cells (`analysis.results.Results.cells`) that ran under different versions of the rules.

    Raises:
        UsageError: They did; the message says which folders hold which version.
    """
    folders: dict[str, list[str]] = {}
    known = cells[cells["rules_version"].notna()]
    places = (str(_folder_of(path)) for path in known["path"])
    for version, place in sorted(set(zip(known["rules_version"].astype(str), places, strict=True))):
        folders.setdefault(version, []).append(place)
    if len(folders) > 1:
        named = " and ".join(f"{version} ({', '.join(where)})" for version, where in folders.items())
        raise UsageError(
            f"cells ran under rules versions {named}, which cannot be compared: read folders of one version together, "
            "and keep the cells of each version in folders of their own"
        )


def _folder_of(path: object) -> Path:
    """The results folder of a cell's tables, which for a running cell are in one of its checkpoints."""
    parents = Path(str(path)).parents
    return next((one.parent for one in parents if one.name == records.CELLS), parents[0])


def name_trainers(cells: pd.DataFrame) -> pd.DataFrame:
    """The same cells, with the trainer as part of the task where it is not our own, so that no table pools the two."""
    own = SETTINGS["trainer"].default
    if "trainer" in cells:
        others = cells["trainer"].fillna(own) != own
        cells.loc[others, "task"] += " in " + cells.loc[others, "trainer"]
    return cells


def comparability_notes(cells: pd.DataFrame) -> list[ComparisonNote]:
    """Notes on a table of cells (`analysis.results.Results.cells`)."""
    return [*_rules(cells), *_method_versions(cells), *_settings(cells), *_unfinished(cells)]


def _rules(cells: pd.DataFrame) -> Iterator[ComparisonNote]:
    known = cells[cells["rules_version"].notna()]
    versions = sorted({str(version) for version in known["rules_version"]})
    text = ""
    if len(versions) > 1:
        text = f"Cells ran under different versions of the rules ({', '.join(versions)}) and are not comparable."
    elif versions and versions[0] != records.RULES_VERSION:
        text = f"Cells ran under rules version {versions[0]}; this program has version {records.RULES_VERSION}."
    if text:
        yield ComparisonNote(text, ("rules_version",), _keys(known))


def _method_versions(cells: pd.DataFrame) -> Iterator[ComparisonNote]:
    code = cells["method_version"].astype(str) + " " + cells.get("plugins", pd.Series("", cells.index)).fillna("")
    columns = ("method", "method_version", *(("plugins",) if "plugins" in cells else ()))
    for name, own in cells.groupby("method"):
        if code[own.index].nunique() > 1:
            yield ComparisonNote(
                f"{name} ran in more than one version of its code: not comparable.", columns, _keys(own)
            )


def _settings(cells: pd.DataFrame) -> Iterator[ComparisonNote]:
    for name, usual in DEFAULTS.items():
        values = {usual if pd.isna(one) else one for one in cells.get(name, [])}
        if len(values) > 1:
            shown = ", ".join(sorted(str(one) or "none" for one in values))
            apart = "which only the comparison of methods keeps apart" if name in BUDGET else "which no table separates"
            yield ComparisonNote(f"Cells differ in {name} ({shown}), {apart}.", (name,), _keys(cells))


def _unfinished(cells: pd.DataFrame) -> Iterator[ComparisonNote]:
    partial = int(cells["partial"].sum())
    if partial:
        text = f"{partial} of {len(cells)} cells are still running or were interrupted."
        yield ComparisonNote(text, ("status", "partial"), _keys(cells))


def _keys(cells: pd.DataFrame) -> tuple[str, ...]:
    return tuple(str(key) for key in cells["key"])
