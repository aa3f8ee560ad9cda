"""Every study: the files of `studies/`, found by looking."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from vcpo_bench.errors import UsageError

from . import studies
from .study import Study


def all_studies() -> dict[str, Study]:
    """The studies by name, in the order in which they are run."""
    modules = [import_module(f"{studies.__name__}.{entry.name}") for entry in iter_modules(studies.__path__)]
    found: list[Study] = sorted((module.STUDY for module in modules), key=lambda study: study.order)
    return {study.name: study for study in found}


def chosen(names: str) -> list[Study]:
    """The studies named in a comma-separated list; empty: all.

    Raises:
        UsageError: There is no such study.
    """
    known = all_studies()
    wanted = [part.strip() for part in names.split(",") if part.strip()]
    if unknown := [name for name in wanted if name not in known]:
        raise UsageError(f"--studies {unknown[0]}: there is no such study; known: {', '.join(known)}")
    return [study for name, study in known.items() if not wanted or name in wanted]
