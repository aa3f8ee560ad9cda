"""The report: the sections that the files of `sections/` declare, in their order."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from vcpo_bench.progress import track
from vcpo_bench.reports import sections
from vcpo_bench.reports.analyses import columns_of_sections, columns_of_signals, columns_read
from vcpo_bench.reports.document import Document, Section
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.report_section import ReportSection
from vcpo_bench.reports.study import Study


def find_sections() -> list[ReportSection]:
    """Every section, in the order of the report; those at the same position go by anchor."""
    files = (import_module(f"{sections.__name__}.{file.name}") for file in iter_modules(sections.__path__))
    found: list[ReportSection] = [one for file in files for one in getattr(file, "SECTIONS", ())]
    return sorted(found, key=lambda one: (one.order, one.anchor))


def build(study: Study) -> Document:
    """The report of a study. Its pictures are drawn by whoever renders it, at that form's size."""
    ledger = Ledger()
    study.results.step_columns(*columns_read())
    study.findings("auroc")  # first, because then the columns that it alone needs can go
    study.results.release(columns_of_signals())
    found = find_sections()
    filled = [
        Section(one.anchor, one.title, one.blocks(study, ledger), one.folded)
        for one in track(found, "analyzing results", len(found))
    ]
    study.results.release(columns_of_sections())  # drawing takes memory of its own
    title = "vcpo-bench report: " + " + ".join(folder.resolve().name for folder in study.results.folders)
    return Document(title, filled, ledger)
