"""Writes the first version of something of one's own and its test (`vcpo-bench new KIND NAME`)."""

from __future__ import annotations

import importlib
import keyword
import re
from pathlib import Path
from typing import Any

from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.errors import PluginError


def write_new(catalog: Catalog[Any], name: str, folder: str | Path) -> list[Path]:
    """Write a working file and its test.

    The texts are `MODULE` and `TEST` of the catalog's template module, with `{name}`, `{module}` (the name with
    underscores), `{title}` (with spaces, upper-case) and `{cls}` (in camel case) to fill in.

    Args:
        catalog: Of which kind.
        name: Name in expressions: lower-case words joined by hyphens.
        folder: Where to write; created when missing.

    Returns:
        The two files, `NAME.py` and `test_NAME.py`, with underscores for the hyphens.

    Raises:
        PluginError: The name is not legal or taken, a file exists, or the kind has no template.
    """
    if not catalog.template:
        raise PluginError(f"new {catalog.kind}: there is no template for it")
    texts = importlib.import_module(catalog.template)
    if catalog.entries.lookup(name) is not None:
        raise PluginError(f"there is a {catalog.kind} {name!r} already; choose another name")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise PluginError(f"{name!r} is not a name; use lower-case words joined by '-', such as my-{catalog.kind}")
    parts = name.split("-")
    module = "_".join(parts)
    place = Path(folder)
    files = [place / f"{module}.py", place / f"test_{module}.py"]
    taken = [file for file in files if file.exists()]
    if taken:
        raise PluginError(f"{taken[0]} exists; choose another name or folder")
    words = {
        "name": name,
        "module": module,
        "title": " ".join(parts).capitalize(),
        "cls": "".join(part.capitalize() for part in parts),
    }
    place.mkdir(parents=True, exist_ok=True)
    for file, text in zip(files, (texts.MODULE, texts.TEST), strict=True):
        file.write_text(text.format(**words))
    return files
