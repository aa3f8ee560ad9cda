"""`vcpo-bench report`."""

from pathlib import Path

from command_line import call


def test_the_page_is_written_where_it_is_asked_for(finished: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = call("report", str(finished), "--html", str(page))
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == [str(page)]
    assert page.read_text().startswith("<!")


def test_an_unknown_venue_is_one_line_and_nothing_is_written(finished: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = call("report", str(finished), "--html", str(page), "--figures", "cvpr")
    assert result.exit_code == 2
    assert "icml" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not page.exists()
