"""Figures for papers: exact widths, letters large enough, PDF, SVG and PGF, tables and macros."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from vcpo_bench.analysis.results import load
from vcpo_bench.errors import UsageError
from vcpo_bench.reports.document import Table, TableCell
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.plots.letters import ROMAN, spell
from vcpo_bench.reports.plots.maps import ess_map
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.plots.paper_figures import ablation, kernels, lag_sweep, results_stack
from vcpo_bench.reports.report import build
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.writers.paper import Printing, write_figures
from vcpo_bench.reports.writers.tex import booktabs, macros
from vcpo_bench.reports.writers.tex_text import escape
from vcpo_bench.reports.writers.venues import VENUES, Venue, find_venue, sheets


@pytest.fixture(scope="module")
def small(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("paper") / "r"
    methods, shapes = ("vcpo", "vcpo(ess=off)"), {"vcpo(ess=off)": "collapsed"}
    return make_results(root, methods=methods, lags=(16,), seeds=(0, 1), steps=60, shapes=shapes, controls=False)


@pytest.fixture(scope="module")
def written(small: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("figures")
    return {path.name: path for path in write_figures(small, out, Printing("icml"))}


def test_every_figure_comes_in_every_form(written: dict[str, Path]) -> None:
    names = {path.stem for path in written.values() if path.suffix == ".pdf"}
    assert names >= {"ess-vs-collapse", "vespo-fig2-kernels", "vcpo-results-stack", "vcpo-fig9-ablation", "survival"}
    for name in names:
        assert {f"{name}.svg", f"{name}.png"} <= set(written)
        assert written[f"{name}.txt"].read_text().strip()
        assert (f"{name}.pgf" in written) == (not name.startswith(("ess-map", "stability")))
    assert "table-scoreboard.tex" in written


def test_widths_are_those_of_the_venue(written: dict[str, Path]) -> None:
    widths = set()
    for path in written.values():
        if path.suffix == ".pdf":
            box = re.search(rb"/MediaBox \[ ?0 0 ([0-9.]+) ([0-9.]+)", path.read_bytes())
            assert box
            widths.add(float(box.group(1)))
            assert float(box.group(2)) < 9 * 72
        if path.suffix == ".svg":
            assert re.search(r'<svg [^>]*width="(234|486)pt"', path.read_text())
    assert widths == {234.0, 486.0}, "3.25 and 6.75 inches"


def test_no_letter_is_smaller_than_seven_points(written: dict[str, Path]) -> None:
    for path in written.values():
        if path.suffix == ".pgf":
            sizes = [float(size) for size in re.findall(r"\\fontsize\{([0-9.]+)\}", path.read_text())]
            assert sizes
            assert min(sizes) >= 7.0, path.name


def test_pdf_holds_no_date_and_its_fonts(written: dict[str, Path]) -> None:
    content = written["ess-vs-collapse.pdf"].read_bytes()
    assert b"CreationDate" not in content
    assert b"/FontFile2" in content, "TrueType, as venues ask"
    assert b"/Type3" not in content


def test_pgf_is_balanced_and_escaped(written: dict[str, Path]) -> None:
    text = written["ess-vs-collapse.pgf"].read_text()
    assert text.count(r"\begin{pgfscope}") == text.count(r"\end{pgfscope}")
    plain = text.replace(r"\{", "").replace(r"\}", "")
    assert plain.count("{") == plain.count("}")
    assert r"D_{\mathrm{KL}}(\mu\,\|\,\theta)" in text


def test_same_results_same_bytes(small: Path, written: dict[str, Path], tmp_path: Path) -> None:
    again = write_figures(small, tmp_path, Printing("icml", ["vcpo-results-stack"]))
    assert len(again) == 5
    assert [path.name for path in again if path.read_bytes() != written[path.name].read_bytes()] == []


def test_unknown_venue_names_the_known_ones(small: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'nurips': choose one of icml, neurips, iclr, jmlr"):
        write_figures(small, tmp_path, Printing("nurips"))


@pytest.mark.parametrize("size", ["1in", "4x0.1in", "4in@5pt", "4..5in", "x2in", "99in"])
def test_sizes_nobody_can_print_are_refused(size: str) -> None:
    with pytest.raises(UsageError, match="no venue"):
        find_venue(size)


def test_sizes_of_ones_own() -> None:
    assert find_venue("4x1.5in@9pt") == Venue(4.0, 4.0, 9.0, 1.5)
    assert find_venue("3.3in") == Venue(3.3, 3.3)
    assert sheets("beamer")[0].font_size == 10.0


def test_figures_for_slides_are_no_higher_than_a_slide_and_stay_readable(small: Path, tmp_path: Path) -> None:
    names = ["vcpo-results-stack", "ess-map-chain"]
    for path in write_figures(small, tmp_path, Printing("beamer", names)):
        if path.suffix == ".pdf":
            box = re.search(rb"/MediaBox \[ ?0 0 ([0-9.]+) ([0-9.]+)", path.read_bytes())
            assert box
            assert float(box.group(2)) <= 2.8 * 72
    with drawing(10.0):
        stack = results_stack(Study(load(small)), sheets("beamer")[1])
    assert stack
    assert [axes.get_title() for axes in stack.figure.axes][:2] == ["held-out reward", "ESS ratio"]


def test_a_map_without_room_for_its_names_is_not_drawn_for_slides(make_results, tmp_path: Path) -> None:
    lags = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
    study = Study(load(make_results(tmp_path, methods=("tis", "vcpo"), lags=lags, seeds=(0,), steps=5, controls=False)))
    assert ess_map(study, sheets("beamer")[1], "chain", "fifo") is None
    with drawing(8.0):
        assert ess_map(study, sheets("icml")[1], "chain", "fifo") is not None


def test_some_figures_of_some_methods(small: Path, tmp_path: Path) -> None:
    found = write_figures(small, tmp_path, Printing("2.5x1in@7pt", ["score-lag"], ["vcpo"], ["pdf", "svg"]))
    assert [path.name for path in found] == ["score-lag.pdf", "score-lag.svg", "score-lag.txt"]
    assert set(tmp_path.iterdir()) == set(found), "nothing else is left behind"
    box = re.search(rb"/MediaBox \[ 0 0 ([0-9.]+)", (tmp_path / "score-lag.pdf").read_bytes())
    assert box
    assert float(box[1]) == pytest.approx(2.5 * 72, abs=0.1)
    assert "ess=off" not in (tmp_path / "score-lag.svg").read_text()


def test_names_are_checked_before_anything_is_written(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "new"
    with pytest.raises(UsageError, match="did you mean score-lag"):
        write_figures(small, out, Printing("icml", ["survival", "scores-lag"]))
    with pytest.raises(UsageError, match="k-hat: these results do not have what it needs: trajectories"):
        write_figures(small, out, Printing("icml", ["score-lag", "k-hat"]))
    with pytest.raises(UsageError, match="vespo"):
        write_figures(small, out, Printing("icml", (), ["vespo"]))
    with pytest.raises(UsageError, match="did you mean pgf or pdf"):
        write_figures(small, out, Printing("icml", (), (), ["pfd"]))
    assert not out.exists()


def test_one_of_several_figures_of_a_kind(small: Path, tmp_path: Path) -> None:
    kind = write_figures(small, tmp_path / "kind", Printing("icml", ["ess-map"], forms=["pdf"]))
    one = write_figures(small, tmp_path / "one", Printing("icml", ["ess-map-chain"], forms=["pdf"]))
    assert [path.name for path in kind] == [path.name for path in one] == ["ess-map-chain.pdf", "ess-map-chain.txt"]


def test_png_has_300_dots_per_inch_on_white(written: dict[str, Path]) -> None:
    from matplotlib.image import imread

    pixels = imread(written["vespo-fig2-kernels.png"])
    assert pixels.shape[1] == round(3.25 * 300)
    assert (pixels[0, 0] == 1).all()
    assert b"matplotlib" not in written["vespo-fig2-kernels.png"].read_bytes()


def test_the_words_of_an_svg_are_text(written: dict[str, Path]) -> None:
    text = written["vespo-fig2-kernels.svg"].read_text()
    assert ">advantage above 0</text>" in text
    assert "'STIXGeneral', 'STIX Two Text', 'Times New Roman', Times, serif" in text


@pytest.mark.parametrize("name", VENUES)
def test_letters_are_those_of_the_venue(name: str, small: Path, tmp_path: Path) -> None:
    (path, _) = write_figures(small, tmp_path, Printing(name, ["vespo-fig2-kernels"], forms=["pdf"]))
    fonts = {font.decode().lower() for font in re.findall(rb"/BaseFont /[A-Z]+\+(\w+)", path.read_bytes())}
    assert fonts == {VENUES[name].letters.families[0].replace(" ", "").lower()}


def test_characters_that_a_font_of_tex_lacks_come_from_the_next(tmp_path: Path) -> None:
    with drawing(8.0, ROMAN):
        figure = Figure(figsize=(2, 1))
        axes = figure.subplots()
        axes.set_title("a_b < c")
        axes.set_xlabel("reward")
        spell(figure, ROMAN)
    assert axes.title.get_fontfamily() == ["STIXGeneral"]
    assert axes.xaxis.label.get_fontfamily() == ["cmr10", "STIXGeneral"]


def test_kernels_are_the_closed_forms(study: Study) -> None:
    with drawing():
        plot = kernels(study, sheets("acl")[0])
    at = {(line.panel, line.name): dict(zip(line.x.round(3), line.y, strict=True)) for line in plot.lines}
    assert at[0, "vespo"][1.0] == at[1, "vespo"][1.0] == 1.0
    assert at[0, "vespo"][0.5] == pytest.approx(1.12, abs=0.005), "the paper's table of phi"
    assert at[1, "vespo"][2.0] == pytest.approx(1.08, abs=0.005)
    assert (at[0, "clip"][1.5], at[1, "clip"][1.5]) == (0.0, 1.5)
    assert at[0, "sapo"][1.0] == pytest.approx(1.0)


def test_published_figures_need_their_data(make_results: Callable[..., Path], tmp_path: Path) -> None:
    root = make_results(tmp_path / "r", methods=("clip",), lags=(0,), seeds=(0,), steps=30, controls=False)
    bare = Study(load(root))
    with drawing():
        assert [draw(bare, sheets("acl")[0]) for draw in (results_stack, lag_sweep, ablation)] == [None, None, None]


def test_tex_escapes_and_tables() -> None:
    assert escape("a_b & 50% of $x$ {y} \\ ~^ #1") == (
        r"a\_b \& 50\% of \$x\$ \{y\} \textbackslash{} \textasciitilde{}\textasciicircum{} \#1"
    )
    rows = [[TableCell("vcpo_x"), TableCell("0.50", tone="bad")]]
    text = booktabs(Table("t", "A 5% test", ["method", "reward"], rows, frozenset({1})))
    assert r"\begin{tabular}{lr}" in text
    assert r"vcpo\_x & \textbf{0.50} \\" in text
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]


def test_macros_hold_every_number(study: Study) -> None:
    ledger = build(study).ledger
    text = macros(ledger)
    found = re.findall(r"vcponum@(\S+?)\\endcsname\{", text)
    assert sorted(found) == sorted(ledger.numbers)
    assert macros(Ledger()).count("\n") == 2
    assert r"\PackageError{vcpo-bench}{No number #1}" in macros(Ledger()), "an unknown id prints nothing otherwise"
    assert np.isfinite([entry.value for entry in ledger.numbers.values() if entry.what == "collapsed"]).all()
