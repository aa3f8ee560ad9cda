"""Packs a results folder: `python tools/run_archives/pack.py RESULTS FOLDER`.

One archive per task, method, regime and lag; forks apart from other runs. An archive that is there is written anew.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from run_archives.archive import pack
from vcpo_bench.analysis.results import load
from vcpo_bench.errors import UsageError

SUFFIX = ".zip"


def name_of(cell: Mapping[str, object]) -> str:
    """The name of the archive that holds a cell.

    Args:
        cell: Row of `analysis.results.Results.cells`.
    """
    parts = [str(cell[name]) for name in ("task", "method", "regime", "staleness")]
    words = [re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") for part in parts]
    return "_".join([*words, *(["fork"] if cell["parent"] else [])])


def pack_folder(results: Path, folder: Path) -> list[Path]:
    """Write the archives of a results folder; cells that ended in an error have no tables, and are left out.

    Args:
        results: Results folder.
        folder: Where the archives go.

    Returns:
        The archives.

    Raises:
        UsageError: The folder does not exist or holds no ended cell.
    """
    groups: dict[str, list[Path]] = defaultdict(list)
    for cell in load(results).cells.query("status != 'error'").to_dict("records"):
        groups[name_of({str(name): value for name, value in cell.items()})].append(Path(cell["path"]))
    archives = {folder / f"{name}{SUFFIX}": cells for name, cells in groups.items()}
    for path, cells in archives.items():
        pack(cells, path)
    return list(archives)


def main() -> None:
    """Read the arguments and pack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    try:
        archives = pack_folder(given.results, given.folder)
    except UsageError as error:
        parser.error(str(error))
    for path in archives:
        print(f"{path}  {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
