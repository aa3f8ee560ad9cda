"""The PDF: whole, embedded fonts, vectors; and the same bytes of PDF and page in another process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.reports.document import Table, TableCell
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.writers.html import render
from vcpo_bench.reports.writers.pdf import _table, typeset, write_pdf


@pytest.fixture(scope="module")
def tiny(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pdf") / "tiny"
    return make_results(
        root, methods=("vcpo",), lags=(16,), seeds=(0, 1), steps=60, shapes={"vcpo": "collapsed"}, controls=False
    )


@pytest.fixture(scope="module")
def pdf(tiny: Path) -> bytes:
    return typeset(Study(load(tiny)))


def streams(pdf: bytes) -> bytes:
    """All compressed streams of a PDF, unpacked."""
    found = re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL)
    parts = []
    for one in found:
        try:
            parts.append(zlib.decompress(one))
        except zlib.error:
            parts.append(one)
    return b"\n".join(parts)


def test_pdf_is_whole_and_its_fonts_are_inside(pdf: bytes) -> None:
    assert pdf.startswith(b"%PDF-1.")
    assert pdf.rstrip().endswith(b"%%EOF")
    everything = pdf + streams(pdf)
    assert b"LibertinusSerif" in everything
    assert everything.count(b"/FontFile3") >= everything.count(b"/FontDescriptor ") // 2 > 0
    assert b"CreationDate" not in everything


def test_figures_are_vectors(pdf: bytes) -> None:
    drawn = streams(pdf)
    assert len(re.findall(rb"\b(?:l|c)\n", drawn)) > 500, "curves are paths"
    images = len(re.findall(rb"/Subtype\s*/Image", pdf + drawn))
    assert images <= 5, "only the maps are images: ESS with its scale, and stability per method"


@pytest.mark.slow
def test_same_results_same_bytes_in_another_process(tiny: Path, pdf: bytes, tmp_path: Path) -> None:
    code = (
        "import sys; from vcpo_bench.reports.writers import html, pdf;"
        "pdf.write_pdf(sys.argv[1], sys.argv[2] + '.pdf'); html.write_page(sys.argv[1], sys.argv[2] + '.html')"
    )
    subprocess.run([sys.executable, "-c", code, str(tiny), str(tmp_path / "r")], check=True)
    assert (tmp_path / "r.pdf").read_bytes() == pdf
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == render(Study(load(tiny)), home=tmp_path)


def test_markup_in_strings_is_printed_not_read(tiny: Path, make_results: Callable[..., Path], tmp_path: Path) -> None:
    nasty = '#panic("x") $x_1$ *b* @ref <l> \\ " \' [ ] { }'
    root = make_results(tmp_path / "n", methods=("vcpo",), lags=(1,), seeds=(0,), steps=30, controls=False)
    for cell in (root / "cells").iterdir():
        facts = json.loads((cell / "cell.json").read_text())
        facts["config"]["method"] = nasty
        facts |= {"reason": nasty, "status": "nan"}
        (cell / "cell.json").write_text(json.dumps(facts))
    assert write_pdf(root, tmp_path / "n.pdf").read_bytes().startswith(b"%PDF")


def test_columns_that_say_nothing_are_not_printed() -> None:
    rows = [[TableCell(text) for text in (name, "3", "0.5", "\u2013", "")] for name in ("clip", "vcpo")]
    headings = ["method", "seeds", "reward", "95%", "not completed"]
    printed = _table(Table("scoreboard", "Rewards.", headings, rows, frozenset({1, 2, 3}), settings=2))
    assert printed["headings"] == ["method", "reward"], "a result stays although all rows agree in it"
    assert printed["numeric"] == [1]
    assert printed["caption"] == "Rewards. In all rows: seeds 3."
