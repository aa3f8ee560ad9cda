"""`vcpo-bench results diff`."""

from pathlib import Path

from command_line import call


def test_a_folder_against_itself(finished: Path, tmp_path: Path) -> None:
    same = call("results", "diff", str(finished), str(finished))
    assert same.exit_code == 0
    assert "Conclusions" in same.output
    page = tmp_path / "diff.html"
    assert call("results", "diff", str(finished), str(finished), "--html", str(page)).stdout.split() == [str(page)]
    assert page.read_text().startswith("<!")
