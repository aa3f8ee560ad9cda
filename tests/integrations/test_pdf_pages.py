"""The PDF as images: every page holds something, nothing is cut off at its edges, and its text can be read back."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("playwright", reason="runs in .ci/integrations browser")
image = pytest.importorskip("PIL.Image", reason="runs in .ci/integrations browser")
if shutil.which("pdftoppm") is None:
    pytest.skip("nothing to draw pages with: .ci/integrations browser installs poppler-utils", allow_module_level=True)


@pytest.fixture(scope="module")
def pdf(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from vcpo_bench.reports.writers.pdf import write_pdf

    root = tmp_path_factory.mktemp("pages")
    make_results(root / "study", methods=("vcpo", "tis"), lags=(1, 16), seeds=(0, 1, 2), steps=80)
    return write_pdf(root / "study", root / "report.pdf")


def test_every_page_holds_something_within_its_margins(pdf: Path, tmp_path: Path) -> None:
    subprocess.run(["pdftoppm", "-r", "50", "-gray", "-png", str(pdf), str(tmp_path / "page")], check=True)
    pages = sorted(tmp_path.glob("page-*.png"))
    assert len(pages) >= 4
    for page in pages:
        ink = np.asarray(image.open(page).convert("L")) < 200
        body = ink[40:-45].any(axis=1)  # without the header and the number of the page
        assert page == pages[-1] or np.flatnonzero(body).max() > 0.55 * len(body), f"{page.name} is half empty"
        edge = 30  # 1.5 cm at 50 dots per inch
        assert not ink[:, :edge].any(), f"{page.name} runs over its left margin"
        assert not ink[:, -edge:].any(), f"{page.name} runs over its right margin"


def test_a_figure_of_many_learning_rates_lies_on_one_page(make_results: Callable[..., Path], tmp_path: Path) -> None:
    from vcpo_bench.reports.writers.pdf import write_pdf

    rates = tuple(2.5e-5 * 2**rung for rung in range(9))
    make_results(tmp_path / "study", methods=("vcpo",), lags=(1, 16), seeds=(0,), steps=40, lrs=rates)
    pdf = write_pdf(tmp_path / "study", tmp_path / "report.pdf")
    subprocess.run(["pdftoppm", "-r", "50", "-gray", "-png", str(pdf), str(tmp_path / "page")], check=True)
    for page in sorted(tmp_path.glob("page-*.png")):
        foot = (np.asarray(image.open(page).convert("L")) < 200)[-40:]  # 2 cm: the page's number alone
        assert foot.any(axis=0).sum() < 30, f"{page.name} runs over its lower margin"
    text = subprocess.run(["pdftotext", str(pdf), "-"], check=True, capture_output=True, text=True).stdout
    pages = [page.split() for page in text.split("\f")]
    assert not [page for page in pages if page and len(page) < 12], "a heading stands alone"


def test_text_fonts_and_headings(pdf: Path) -> None:
    text = subprocess.run(["pdftotext", str(pdf), "-"], check=True, capture_output=True, text=True).stdout
    for heading in ("In short", "Scoreboard", "Learning curves", "Threats to validity", "Appendix: all cells"):
        assert heading in text
    assert "vcpo-bench report: study" in text
    fonts = subprocess.run(["pdffonts", str(pdf)], check=True, capture_output=True, text=True).stdout.splitlines()[2:]
    assert fonts
    assert {line.split("+")[1].split("-")[0] for line in fonts} == {"LibertinusSerif"}, "figures too"
    assert all(line.split()[-5:-2] == ["yes", "yes", "yes"] for line in fonts), "embedded, subset, with unicode"
