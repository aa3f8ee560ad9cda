"""Tables, macros and figures through pdfLaTeX in the classes of journals and conferences, or at a venue's widths.

The style files of ICML, NeurIPS, ICLR, JMLR, TMLR and ACL and the layout of Nature are not part of TeX Live: an article
with their widths stands in for them.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from matplotlib.image import imread
from patience import within

from vcpo_bench.reports.document import Document, Section, Table, TableCell
from vcpo_bench.reports.figure import Array
from vcpo_bench.reports.report import build
from vcpo_bench.reports.study import Study, open_study
from vcpo_bench.reports.writers.paper import Printing, write_figures
from vcpo_bench.reports.writers.tex import write_tables
from vcpo_bench.reports.writers.tex_tables import COLUMN, TEXT
from vcpo_bench.reports.writers.venues import VENUES, find_venue

LANE = "needs .ci/integrations latex, which installs TeX Live"
if any(shutil.which(program) is None for program in ("pdflatex", "pdftotext", "kpsewhich")):
    pytest.skip(LANE, allow_module_level=True)


class Paper(NamedTuple):
    """The head of a paper, and the widths its tables are written for: of a column and of the text, in inches."""

    head: str
    column: float = COLUMN
    text: float = TEXT
    frames: bool = False


def article(venue: str, size: str = "10pt") -> Paper:
    """An article with the widths of a venue."""
    sizes = find_venue(venue)
    two = sizes.column != sizes.text
    geometry = f"\\usepackage[textwidth={sizes.text}in,textheight=9in]{{geometry}}"
    gap = f"\\columnsep={sizes.text - 2 * sizes.column}in\n" if two else ""
    options = size + (",twocolumn" if two else "")
    return Paper(f"\\documentclass[{options}]{{article}}\n{geometry}\n{gap}", sizes.column, sizes.text)


PAPERS = {
    "article": Paper(r"\documentclass[twocolumn]{article}"),
    "article-12pt": Paper(r"\documentclass[12pt]{article}" + "\n" + r"\usepackage[margin=1in]{geometry}"),
    "IEEEtran": Paper(r"\documentclass[conference]{IEEEtran}"),
    "acmart": Paper(
        r"\PassOptionsToPackage{expansion=false}{microtype}"  # fonts that can be stretched are in cm-super
        + "\n"
        + r"\documentclass[sigconf,nonacm]{acmart}\title{A paper}\author{A. Author}"
    ),
    "revtex": Paper(r"\documentclass[prl,twocolumn]{revtex4-2}"),
    "elsarticle": Paper(r"\documentclass[5p,twocolumn]{elsarticle}"),
    "llncs": Paper(r"\documentclass{llncs}", 4.8, 4.8),
    "icml": article("icml"),
    "neurips": article("neurips"),
    "iclr": article("iclr"),
    "jmlr": article("jmlr", "11pt"),
    "tmlr": article("tmlr"),
    "acl": article("acl", "11pt"),
    "nature": article("nature"),
    "beamer": Paper(
        r"\documentclass{beamer}" + "\n" + r"\geometry{paperwidth=160mm,paperheight=90mm}",
        VENUES["beamer"].column,
        VENUES["beamer"].text,
        frames=True,
    ),
}

PACKAGES = ("booktabs", "graphicx", "array", "pgf")
ODD = "50% of a_b & $x^2$ {y} \\z ~ # < > | `c` -- 'quoted' ''twice'' \u2212 \u2264 \u00b1 \u03bc \u4e2d \u00e9 \u2026"


@pytest.fixture(scope="module")
def folder(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("latex") / "study"
    shapes = {"vcpo(ess=off)": "collapsed", "tis": "nan"}
    methods = ("vcpo", "vcpo(ess=off)", "tis")
    return make_results(root, methods=methods, lags=(1, 16), seeds=(0, 1, 2), steps=80, shapes=shapes)


@pytest.fixture(scope="module")
def study(folder: Path) -> Study:
    return open_study(folder)


@pytest.fixture(scope="module")
def document(study: Study) -> Document:
    """The report, and tables of what reports of other studies hold: odd letters, many rows, long transcripts."""
    found = build(study)
    odd = [[TableCell(ODD), TableCell(str(i), tone="bad")] for i in range(3)]
    many = [
        [TableCell(f"clip(high=0.{i})"), TableCell(f"{i / 7:.3f} [0.000, 1.000]"), TableCell(str(i % 7))]
        for i in range(95)
    ]
    long = [[TableCell(str(i)), TableCell("4 to 7 not 4,6: 4>5>6 [0] " * (3 + i))] for i in range(30)]
    caption = "How `vcpo-bench lab analyze prediction --leads 5,10,20` sees it, \u00b195%."
    tables = [
        Table("odd", caption, ["what", "n"], odd, frozenset({1})),
        Table("many", caption, ["method", "final reward [95%]", "n"], many, frozenset({1, 2})),
        Table("long", caption, ["update", "episodes"], long, frozenset({0})),
        Table("wide", caption, [f"heading {i}" for i in range(9)], [[TableCell(f"word{i}" * 4) for i in range(9)]]),
    ]
    return Document(found.title, [*found.sections, Section("odd", "Odd", [*tables])], found.ledger)


def ask_for(*files: str) -> None:
    """Skip where TeX Live has not all of these: a partial one has pdfLaTeX and no classes of publishers."""
    if subprocess.run(["kpsewhich", *files], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"{LANE}: {' '.join(files)}")


def compiled(folder: Path, paper: Paper, body: str) -> tuple[int, str]:
    """Exit code and log of pdfLaTeX, which runs in `folder`."""
    classes = re.findall(r"\\documentclass(?:\[.*?\])?\{(.+?)\}", paper.head)
    fonts = ("ptmr7t.tfm",) if classes == ["acmart"] else ()
    ask_for(f"{classes[0]}.cls", *fonts, *(f"{name}.sty" for name in PACKAGES))
    packages = f"\\usepackage{{{','.join(PACKAGES)}}}\n\\input{{macros}}"
    text = f"{paper.head}\n{packages}\n\\begin{{document}}\n{body}\n\\end{{document}}\n"
    (folder / "paper.tex").write_text(text)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=folder,
        capture_output=True,
        timeout=within(120),
        check=False,
    )
    return done.returncode, (folder / "paper.log").read_text(errors="replace").replace("\n", " \n")


@pytest.mark.parametrize("name", PAPERS)
def test_every_table_compiles_and_fits(name: str, document: Document, tmp_path: Path) -> None:
    paper = PAPERS[name]
    tables = [path for path in write_tables(document, tmp_path, paper.column, paper.text) if path.stem != "macros"]
    assert len(tables) >= 10
    number = next(entry for entry in document.ledger.numbers.values() if math.isfinite(entry.value))
    start = r"\maketitle" + "\n" if "acmart" in paper.head else ""
    body = [f"{start}Final reward \\vcponum{{{number.id}}}."]
    for table in tables:
        if not paper.frames:
            body.append(f"\\input{{{table.stem}}}\\clearpage")
        elif table.stem == "table-odd":  # a slide has no room for the longer ones
            body.append(f"\\begin{{frame}}\\input{{{table.stem}}}\\end{{frame}}")
    code, log = compiled(tmp_path, paper, "\n".join(body))
    assert code == 0, log[-3000:]
    complaints = ("Overfull", "too large for page", "Missing character", "multiply defined")
    found = [line for line in log.splitlines() if any(one in line for one in complaints)]
    assert not [line for line in found if "vbox" not in line], found
    text = subprocess.run(["pdftotext", "-layout", "paper.pdf", "-"], cwd=tmp_path, capture_output=True, check=True)
    assert number.text.replace("\u2212", "-") in text.stdout.decode().replace("\u2212", "-")
    assert "U+4E2D" in text.stdout.decode()


def test_an_unknown_number_stops_the_paper(document: Document, tmp_path: Path) -> None:
    write_tables(document, tmp_path)
    code, log = compiled(tmp_path, PAPERS["article"], r"\vcponum{final-reward-00000000}")
    assert code != 0
    assert "No number final-reward-00000000" in log


def darkness(path: Path) -> Array:
    """Mean darkness of the squares of a tenth of an inch of a PNG at 100 dots per inch."""
    ink = 1 - imread(path)[..., :3].mean(axis=-1)
    height, width = (side // 10 for side in ink.shape)
    return ink[: 10 * height, : 10 * width].reshape(height, 10, width, 10).mean(axis=(1, 3))


def compiled_figures(folder: Path, fonts: str) -> list[str]:
    """Compile every PGF of a folder into a PNG `tex-NAME.png` of its size; returns the names."""
    ask_for("article.cls", "pgf.sty")
    names = sorted(path.stem for path in folder.glob("*.pgf"))
    page = r"\setbox0\hbox{\input{NAME.pgf}\unskip}\pdfpagewidth\wd0 \pdfpageheight\ht0 \shipout\box0"
    body = "\n".join(page.replace("NAME", name) for name in names)
    head = f"\\documentclass{{article}}{fonts}\\usepackage{{pgf}}\\pdfhorigin0pt\\pdfvorigin0pt"
    (folder / "all.tex").write_text(f"{head}\n\\begin{{document}}\n{body}\n\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=within(120), check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    for number, name in enumerate(names, 1):
        rastered(folder, "all.pdf", f"tex-{name}", number)
    return names


def rastered(folder: Path, pdf: str, png: str, page: int = 1) -> None:
    """A page of a PDF as PNG, 100 dots per inch."""
    size = ["-r", "100", "-png", "-singlefile", "-f", str(page)]
    subprocess.run(["pdftoppm", *size, pdf, png], cwd=folder, capture_output=True, check=True)


SANS = r"\renewcommand{\familydefault}{\sfdefault}"
FONTS = {"jmlr": "", "nature": SANS, "tmlr": SANS, "beamer": SANS}
FEW = ("ess-vs-collapse", "vespo-fig2-kernels")


@pytest.mark.slow
@pytest.mark.parametrize("venue", VENUES)
def test_every_figure_as_pgf_is_the_picture_of_its_pdf(venue: str, folder: Path, tmp_path: Path) -> None:
    """Once all of it but the letters was drawn at 72% of the size, since an SVG had been written before."""
    if shutil.which("pdftoppm") is None:
        pytest.skip(LANE)
    fonts = FONTS.get(venue, r"\usepackage{times}")
    ask_for("article.cls", *(f"{name}.sty" for name in re.findall(r"usepackage\{(\w+)\}", fonts)))
    write_figures(folder, tmp_path, Printing(venue, () if venue == "icml" else FEW))
    names = compiled_figures(tmp_path, fonts)
    assert len(names) >= (15 if venue == "icml" else 2)
    for name in names:
        rastered(tmp_path, f"{name}.pdf", f"pdf-{name}")
        ours, theirs = darkness(tmp_path / f"pdf-{name}.png"), darkness(tmp_path / f"tex-{name}.png")
        assert ours.shape == theirs.shape, name
        assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.93, name
