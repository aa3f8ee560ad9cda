"""No page says of a study that has a page of results that it is yet to be run."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STALE = re.compile(
    r"\bnot (been )?run yet|\bthere is no page until|\byet to be run\b|\bregistered, not run\b|still being run"
    r"|\bno page yet\b|\bis \[registered\]\(",
    re.IGNORECASE,
)
"""Once a study has a page, its registration is not all there is."""
PASSAGE = re.compile(r"\n\s*\n|\n(?=\s*[*-] )|\n(?=\|)")
"""Where a paragraph, an item of a list or a row of a table begins."""
REGISTRATIONS = sorted((ROOT / "docs" / "studies").glob("*/registration.md"))
LINK = re.compile(r"\]\(([^)#\s]+)")


def stale(page: Path, studies: Path) -> Iterator[str]:
    """The sentences of a page that a published study has overtaken: one that it links to, or else its own."""
    for passage in PASSAGE.split(page.read_text(encoding="utf-8")):
        for sentence in re.split(r"(?<=[.:])\**\s+(?=[A-Z*\[`])", " ".join(passage.split())):
            if STALE.search(sentence):
                targets = [(page.parent / link).resolve() for link in LINK.findall(sentence)] or [page.resolve()]
                folders = {target.parent for target in targets if target.is_relative_to(studies.resolve())}
                if any((folder / "README.md").exists() for folder in folders):
                    yield sentence


def pages(root: Path) -> list[Path]:
    return [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "tools").rglob("*.md")]


@pytest.mark.parametrize("page", pages(ROOT), ids=lambda page: str(page.relative_to(ROOT)))
def test_no_published_study_is_said_to_be_unrun(page: Path) -> None:
    assert not list(stale(page, ROOT / "docs" / "studies"))


@pytest.mark.parametrize(
    "registration", sorted((ROOT / "docs" / "studies").glob("*/registration.md")), ids=lambda path: path.parent.name
)
def test_a_registration_stays_true_when_there_is_a_page(registration: Path, tmp_path: Path) -> None:
    """What was seen before may name other studies as they were; of its own study it says what stays true."""
    copy = tmp_path / "own" / "registration.md"
    copy.parent.mkdir()
    shutil.copy(registration, copy)
    (copy.parent / "README.md").write_text("# Own\n")
    assert not list(stale(copy, tmp_path))


def test_rows_and_links_to_a_registration_are_found_too(tmp_path: Path) -> None:
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
    (tmp_path / "old" / "README.md").write_text("# Old\n")
    page = tmp_path / "list.md"
    page.write_text(
        "| study | what |\n|---|---|\n| [Old](old/README.md) | published |\n"
        "| [New](new/registration.md) | which seed fails; registered, not run |\n\n"
        "* See [new](new/registration.md), which is still being run over many lags.\n"
        "* A study with a placebo is [registered](new/registration.md).\n"
    )
    assert not list(stale(page, tmp_path))
    (tmp_path / "new" / "README.md").write_text("# New\n")
    assert len(list(stale(page, tmp_path))) == 3


def test_such_a_sentence_is_found_once_the_study_has_a_page(tmp_path: Path) -> None:
    new, other = tmp_path / "new", tmp_path / "other"
    for folder in (new, other):
        folder.mkdir()
    (other / "README.md").write_text(
        "# Other\n\n* One.\n* A study is [registered](../new/registration.md) and not\n  run yet. More.\n"
    )
    registration = new / "registration.md"
    registration.write_text(
        "# New\n\n**Not run yet.** Seen before: [other](../other/README.md).\n\nThere is no page until May.\n"
    )
    found = lambda: [len(list(stale(page, tmp_path))) for page in (other / "README.md", registration)]  # noqa: E731
    assert found() == [0, 0]
    (new / "README.md").write_text("# New\n")
    assert found() == [1, 2]
