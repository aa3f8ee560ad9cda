"""The report: every file of `sections/` that declares its `PLACE`, in that order."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple, cast

from vcpo_bench.progress import track
from vcpo_bench.reports import sections
from vcpo_bench.reports.analyses import columns_of_sections, columns_of_signals, columns_read
from vcpo_bench.reports.document import Block, Document, Section
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.study import Study


class _Found(NamedTuple):
    """A section: its anchor is the name of its file, with hyphens."""

    place: Place
    anchor: str
    blocks: Callable[[Study, Ledger], list[Block]]


def find_sections() -> list[_Found]:
    """Every section, in the order of the report; those at the same position go by name."""
    found = []
    for file in iter_modules(sections.__path__):
        module = import_module(f"{sections.__name__}.{file.name}")
        if hasattr(module, "PLACE"):
            found.append(_Found(cast("Place", module.PLACE), file.name.replace("_", "-"), module.blocks))
    return sorted(found, key=lambda one: (one.place.order, one.anchor))


def build(study: Study) -> Document:
    """The report of a study. Its pictures are drawn by whoever renders it, at that form's size."""
    ledger = Ledger()
    study.results.step_columns(*columns_read())
    study.findings("auroc")  # first, because then the columns that it alone needs can go
    study.results.release(columns_of_signals())
    found = find_sections()
    filled = [
        Section(one.anchor, one.place.title, one.blocks(study, ledger), one.place.folded)
        for one in track(found, "analyzing results", len(found))
    ]
    study.results.release(columns_of_sections())  # drawing takes memory of its own
    title = "vcpo-bench report: " + " + ".join(folder.resolve().name for folder in study.results.folders)
    return Document(title, filled, ledger)
