"""Every generated page of the docs is current."""

from pathlib import Path

import make_docs
import pytest


@pytest.mark.parametrize("path", make_docs.PAGES)
def test_what_is_generated_is_what_is_committed(path: str) -> None:
    assert make_docs.PAGES[path]() == (make_docs.ROOT / path).read_text(), "run: python tools/make_docs.py"


def test_a_stale_page_is_named_and_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make_docs, "ROOT", tmp_path)
    monkeypatch.setattr(make_docs, "PAGES", {"stale.md": lambda: "new", "current.md": lambda: "same"})
    (tmp_path / "stale.md").write_text("old")
    (tmp_path / "current.md").write_text("same")
    assert make_docs.main(check=True) == 1
    assert (tmp_path / "stale.md").read_text() == "old"
    assert make_docs.main(check=False) == 0
    assert (tmp_path / "stale.md").read_text() == "new"
    assert make_docs.main(check=True) == 0
    assert capsys.readouterr().out == "stale.md is stale\nstale.md written\n"
