"""Links as they work in the repository, led to pages of the site: of files outside of `docs/`, and of folders."""

import gzip
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from vcpo_bench.analysis.comparison.leaderboard import read_entry
from vcpo_bench.reports.writers.leaderboard import write_site

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^()\s#]+)(#[^()\s]*)?(?=\))")
FENCE = re.compile(r"^(```+).*?^\1\s*$", flags=re.S | re.M)
BOARD = PurePosixPath("docs/studies/leaderboard")
"""Folder of the leaderboard's entries; the site has its page there."""
AS_TEXT = {".cff", ".css", ".json", ".py", ".sh", ".toml", ".yaml", ".yml", ""}


def read(name: str) -> str:
    """The text of a file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def root_pages() -> dict[str, str]:
    """Pages for the texts at the root, by address."""
    names = sorted(path.name for path in ROOT.glob("*.md"))
    return {_page_of(PurePosixPath(name)): read(name) for name in names}


def notebook_pages() -> dict[str, str]:
    """The text, the code and the outputs of every notebook, by address."""
    return {f"notebooks/{path.stem}.md": _notebook(path) for path in sorted(ROOT.glob("notebooks/*.ipynb"))}


def unpacked() -> dict[str, bytes]:
    """Rendered reports that `docs/` holds compressed, by address."""
    packed = sorted((ROOT / "docs").rglob("*.html.gz"))
    return {_page_of(PurePosixPath(path.relative_to(ROOT))): gzip.decompress(path.read_bytes()) for path in packed}


def leaderboard() -> dict[str, str]:
    """The leaderboard of the repository's own studies, as `vcpo-bench results publish` writes it, by address."""
    entries = [read_entry(path) for path in sorted((ROOT / BOARD).glob("*.json"))]
    with TemporaryDirectory() as folder:
        written = write_site(Path(folder), entries)
        where = BOARD.relative_to("docs")
        return {str(where / path.relative_to(folder)): path.read_text(encoding="utf-8") for path in written}


def _notebook(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _cell(cell)) + "\n"


def _cell(cell: Mapping[str, Any]) -> Iterator[str]:
    """The parts of a page that show a cell of a notebook."""
    text = "".join(cell["source"])
    yield f"```python\n{text}\n```" if cell["cell_type"] == "code" else text
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        if "image/png" in data:
            yield f"![What the code draws](data:image/png;base64,{data['image/png'].strip()})"
        else:
            yield f"```text\n{''.join(output.get('text') or data['text/plain']).rstrip()}\n```"


def pages_linked_from(pages: Mapping[str, str]) -> dict[str, str]:
    """Pages that show the files and folders which these pages link to, by address."""
    made = {}
    for uri, markdown in pages.items():
        for target in _targets(markdown, PurePosixPath(uri)):
            address = _page_of(target)
            if address not in pages and address.endswith(".md"):
                made[address] = _shown(target)
    return made


def rewrite(markdown: str, uri: PurePosixPath) -> str:
    """The page at `uri` with its links leading to where the site has what they name."""

    def replace(match: re.Match[str]) -> str:
        target = _target(match[1], uri)
        if target is None:
            return match[0]  # for mkdocs to refuse
        return os.path.relpath(_page_of(target), uri.parent).replace(os.sep, "/") + (match[2] or "")

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(replace, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, LINK.sub(replace, markdown[end:])])


def _targets(markdown: str, uri: PurePosixPath) -> Iterator[PurePosixPath]:
    for match in LINK.finditer(FENCE.sub("", markdown)):
        target = _target(match[1], uri)
        if target is not None:
            yield target


def _target(link: str, uri: PurePosixPath) -> PurePosixPath | None:
    """The file or folder of the repository that a link of the page at `uri` names."""
    path = Path(os.path.normpath((ROOT / _source_of(uri)).parent / link))
    return PurePosixPath(path.relative_to(ROOT)) if path.exists() and path.is_relative_to(ROOT) else None


def _source_of(uri: PurePosixPath) -> PurePosixPath:
    """The file of the repository that a page is made from."""
    if uri.parts[0] in ("project", "notebooks"):
        return uri.relative_to("project") if uri.parts[0] == "project" else uri.with_suffix(".ipynb")
    return "docs" / uri


def _page_of(target: PurePosixPath) -> str:
    """Address, below `docs/`, of the page or file that shows a file or folder of the repository."""
    path = ROOT / target
    if target == BOARD:
        return f"{BOARD.relative_to('docs')}/index.html"
    if target.parts[0] == "docs":
        inside = str(target.relative_to("docs")).removesuffix(".gz")
        return f"{inside}/index.md" if path.is_dir() else inside
    if path.is_dir():
        return f"source/{target}/index.md"
    if target.suffix == ".ipynb":
        return str(target.with_suffix(".md"))
    return f"project/{target}" if len(target.parts) == 1 and target.suffix == ".md" else f"source/{target}.md"


def _shown(target: PurePosixPath) -> str:
    """A page with the text of a file, or with the names in a folder."""
    path = ROOT / target
    if path.is_dir():
        inside_docs = target.parts[0] == "docs"
        names = sorted(each.name for each in path.iterdir() if not each.name.startswith((".", "__pycache__")))
        rows = [f"- [{name}]({name})" if inside_docs else f"- `{name}`" for name in names]
        return "\n".join([f"# {target.name}", "", *rows, ""])
    if path.suffix not in AS_TEXT:
        raise ValueError(f"{target}: a link leads to a file of a kind that the site cannot show")
    text = path.read_text(encoding="utf-8")
    return f"# `{target}`\n\n````{path.suffix.removeprefix('.') or 'text'}\n{text}\n````\n"
