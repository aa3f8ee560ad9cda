"""Results of a stranger: text in every writer, never a command to terminal, browser, LaTeX, Typst or spreadsheet."""

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import call
from hostile import DANGEROUS, FORMULA, LONG, NAME, TEXT, active, hostile_results

from vcpo_bench import records
from vcpo_bench.reports.terminal.printable import LONGEST_LINE

READING = (
    *(
        ("show",),
        ("show", "--json"),
        ("lab", "analyze", "collapse"),
        ("lab", "analyze", "compare"),
        ("lab", "analyze", "weights"),
    ),
    *(("lab", "analyze", "gradients"), ("lab", "analyze", "prediction")),
)


@pytest.fixture(scope="module")
def stranger(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_results(tmp_path_factory.mktemp("hostile") / "results", make_results, NAME, TEXT)


@pytest.mark.parametrize("verb", READING, ids=" ".join)
def test_no_verb_lets_a_stranger_drive_the_terminal(stranger: Path, verb: tuple[str, ...]) -> None:
    result = call(*verb, str(stranger))
    assert result.exit_code == 0, result.output
    assert DANGEROUS.search(result.output) is None


def test_what_the_terminal_shows_is_what_was_written(stranger: Path) -> None:
    shown = "".join(call("show", str(stranger)).output.split())
    assert "[boldred]loud[/boldred][/nothing]:smile:" in shown  # no markup, no emoji


def test_a_diagnosis_and_the_list_of_runs_show_text(stranger: Path, tmp_path: Path) -> None:
    cell = next((stranger / records.CELLS).glob("*clip*"))
    for arguments in (
        ("diagnose", str(cell), "--html", str(tmp_path / "d.html")),
        ("results", "diff", str(stranger), str(stranger)),
    ):
        assert DANGEROUS.search(call(*arguments).output) is None
    assert active(tmp_path / "d.html") == []


@pytest.mark.slow
def test_the_page_holds_no_element_of_a_stranger(stranger: Path, tmp_path: Path) -> None:
    result = call("report", str(stranger), "--html", str(tmp_path / "r.html"))
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert active(tmp_path / "r.html") == []
    assert "alert(1)" in (tmp_path / "r.html").read_text()  # the names are there, as text


@pytest.mark.slow
def test_the_pdf_and_the_figures_read_no_markup(stranger: Path, tmp_path: Path) -> None:
    page = ("report", str(stranger), "--html", str(tmp_path / "r.html"))
    result = call(*page, "--pdf", str(tmp_path / "r.pdf"), "--figures", "icml")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")
    for file in (tmp_path / "icml").iterdir():
        if file.suffix in (".tex", ".pgf"):
            assert not _commands(file), file.name
        if file.suffix == ".svg":
            assert "<script" not in file.read_text()


def test_latex_prints_the_names(stranger: Path, tmp_path: Path) -> None:
    result = call("results", "export", str(stranger), "--as", "latex", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    files = list(tmp_path.glob("*.tex"))
    assert any("passwd" in file.read_text() for file in files)
    assert not [command for file in files for command in _commands(file)]


@pytest.mark.parametrize(
    "verb",
    [
        (
            "results",
            "export",
        ),
        ("lab", "analyze", "compare"),
    ],
    ids=" ".join,
)
def test_a_spreadsheet_gets_no_formula(stranger: Path, tmp_path: Path, verb: tuple[str, ...]) -> None:
    result = call(*verb, str(stranger), "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    call("show", str(stranger))
    cells = [
        cell
        for file in (*tmp_path.glob("*.csv"), stranger / "scoreboard.csv")
        for row in csv.reader(file.read_text().splitlines())
        for cell in row
    ]
    assert any(cell.startswith(f"'{FORMULA}") for cell in cells)
    assert not [cell for cell in cells if cell.startswith(("=", "@", "+", "\t", "\r"))]
    assert not [cell for cell in cells if cell.startswith("-") and not _is_number(cell)]


def test_over_long_names_are_set_aside_and_the_rest_is_shown(make_results: Callable[..., Path], tmp_path: Path) -> None:
    folder = hostile_results(tmp_path / "long", make_results, LONG, LONG)
    error = call("show", str(folder))
    assert (error.exit_code, error.stderr.count("\n")) == (2, 1)
    assert "not a printable text of at most 500 characters" in error.stderr
    assert len(error.stderr) <= LONGEST_LINE + len("error: [...] \n")
    make_results(folder, methods=("tis",), steps=40, controls=False)
    shown = call("show", str(folder))
    assert shown.exit_code == 0
    assert LONG not in shown.output
    assert "tis" in shown.output


@pytest.mark.slow
def test_over_long_texts_leave_every_verb_its_answer(make_results: Callable[..., Path], tmp_path: Path) -> None:
    folder = hostile_results(tmp_path / "long", make_results, "", LONG)
    for verb in (("show",), ("lab", "analyze", "collapse"), ("report", "--html", str(tmp_path / "r.html"))):
        assert call(*verb, str(folder)).exit_code == 0


def _commands(file: Path) -> list[str]:
    return re.findall(r"\\(?:input|write18|end\{tabular\} \$)", file.read_text())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
