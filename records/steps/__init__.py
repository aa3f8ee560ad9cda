"""The columns of `steps.parquet`, one row per optimizer update: one file per family, found by listing this folder.

To add a diagnostic, add a file with a tuple `COLUMNS` that holds a `Diagnostic` (or `GradientDiagnostic`). The recorded
table, the table in the docs, the mirrors and the labels of plots follow from it.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from vcpo_bench.records.column import Column
from vcpo_bench.records.diagnostic import Diagnostic

_FIRST = ("progress", "weights", "divergence", "step_size", "clipping", "staleness", "batch", "timing", "queue")
"""Families in the order in which the first recorded tables hold them; the others follow by name."""
_LEVELS = ("basic", "diagnostics", "full")


def _listed() -> dict[str, Diagnostic]:
    """Every column by name, in the order of the table: by record level, then by family."""
    files = sorted(module.name for module in iter_modules(__path__))
    families = sorted(files, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    found: list[Diagnostic] = []
    for family in families:
        found += import_module(f"{__name__}.{family}").COLUMNS
    columns = {one.name: one for one in sorted(found, key=lambda one: _LEVELS.index(one.level))}
    if len(columns) < len(found):
        names = [one.name for one in found]
        raise ValueError(f"two diagnostics have one name: {sorted({name for name in names if names.count(name) > 1})}")
    return columns


DIAGNOSTICS: dict[str, Diagnostic] = _listed()
"""Every column of `steps.parquet` by name, in order."""

STEPS: tuple[Column, ...] = tuple(one.column() for one in DIAGNOSTICS.values())
"""The schema of `steps.parquet`."""
