"""What `mkdocs.yml` runs: adds the pages made from the code, leads links out of `docs/` to pages, makes the menu."""

from pathlib import PurePosixPath
from typing import Any

import links
import navigation
import reference
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in `docs/`; the menu has all but those that only show a file or folder."""
    made = links.root_pages() | links.notebook_pages() | reference.pages()
    written = {file.src_uri: file.content_string for file in files if file.src_uri.endswith(".md")}
    pages = sorted(uri for uri in {*written, *made} if uri.endswith(".md"))
    config.nav = navigation.menu(pages, navigation.chapters(written[navigation.HOME]))
    for packed in [file for file in files if file.src_uri.endswith(".html.gz")]:
        files.remove(packed)
    shown = links.unpacked() | links.leaderboard() | links.pages_linked_from(written | made)
    for uri, content in (made | shown).items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links of one page that lead out of `docs/` or to a folder."""
    return links.rewrite(markdown, PurePosixPath(page.file.src_uri))
