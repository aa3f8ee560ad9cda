"""The documentation site, built strictly: complete, whole, and without anything from elsewhere."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from patience import within

from vcpo_bench.analysis.comparison.leaderboard import read_entry
from vcpo_bench.reports.writers.leaderboard import render

pytest.importorskip("mkdocs", reason="runs in .ci/integrations docs")

ROOT = Path(__file__).resolve().parents[2]
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """Addresses and anchors of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found.get("id", ""), found.get("name", "")}
        if tag in ("a", *LOADED):
            self.links |= {found.get("href", ""), found.get("src", "")} - {""}
        if tag in LOADED and found.get("rel") != "canonical":
            self.loaded.add(found.get(LOADED[tag], ""))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    plain = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, text=True, timeout=within(600))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Every page that mkdocs wrote; rendered reports of studies are files of their own."""
    packed = (ROOT / "docs").rglob("*.html.gz")
    reports = {site / path.relative_to(ROOT / "docs").with_suffix("") for path in packed}
    assert all(path.exists() for path in reports)
    return {path: Page(path) for path in site.rglob("*.html") if path not in reports}


def test_every_link_leads_to_a_place_that_is_there(site: Path, pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            address, _, anchor = link.partition("#")
            if ":" in address or path.name == "404.html":
                continue
            target = Path(os.path.normpath(path.parent / address)) if address else path
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert len(pages) > 50
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page], site: Path) -> None:
    assert [
        (path, url) for path, page in pages.items() for url in page.loaded if "//" in url.partition("base64,")[0]
    ] == []
    assert [
        path for path in site.rglob("*.css") if "url(http" in path.read_text() or "@import" in path.read_text()
    ] == []


def test_the_reference_has_every_package_and_what_it_exports(site: Path, pages: dict[Path, Page]) -> None:
    package = ROOT / ".types" / "vcpo_bench"
    rooms = [init.parent for top in package.iterdir() if top.is_dir() for init in top.rglob("__init__.py")]
    library = [room.relative_to(package) for room in rooms if "commands" not in room.relative_to(package).parts]
    assert [room for room in library if site / "reference" / room / "index.html" not in pages] == []
    assert "vcpo_bench.methods.clip.Clip" in pages[site / "reference/methods/index.html"].anchors
    assert "vcpo_bench.records.column.Column" in pages[site / "reference/records/index.html"].anchors
    exported = (site / "reference/methods/index.html").read_text()
    assert 'href="core/index.html#vcpo_bench.methods.core.batch.Batch"' in exported


def test_the_leaderboard_is_linked_and_shows_every_entry(site: Path, pages: dict[Path, Page]) -> None:
    entries = [read_entry(path) for path in sorted((ROOT / "docs" / "studies" / "leaderboard").glob("*.json"))]
    board = site / "studies" / "leaderboard" / "index.html"
    assert "studies/leaderboard/index.html" in pages[site / "leaderboard.html"].links
    assert board.read_text(encoding="utf-8") == render(entries)
    assert {f"study-{one.name}" for one in entries} <= pages[board].anchors
    assert all((board.parent / "entries" / f"{one.name}.csv").exists() for one in entries)
