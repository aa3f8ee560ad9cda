"""Unpacks a study's archives into a results folder: `python tools/run_archives/unpack.py FOLDER RESULTS`.

Every command that reads results reads it: `vcpo-bench show`, `report`, `analyze`. Subfolders become results folders of
their own. Cells that are there already are never overwritten: unpack into a folder that holds no runs of yours.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from run_archives.archive import unpack
from run_archives.pack import SUFFIX
from vcpo_bench.errors import UsageError


def unpack_folder(folder: Path, results: Path) -> int:
    """Unpack every archive below a folder.

    Args:
        folder: Of archives, or of subfolders of them.
        results: Where the results go, subfolder by subfolder.

    Returns:
        How many cells there are.

    Raises:
        UsageError: There is no archive, one cannot be read, or RESULTS has one of their cells.
    """
    found = sorted(folder.rglob(f"*{SUFFIX}"))
    if not found:
        raise UsageError(f"{folder} holds no archive (*{SUFFIX})")
    if results.exists() and not results.is_dir():
        raise UsageError(f"{results} is no folder")
    return sum(unpack(path, results / path.parent.relative_to(folder)) for path in found)


def main() -> None:
    """Read the arguments and unpack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    given = parser.parse_args()
    try:
        print(f"{unpack_folder(given.folder, given.results)} cells in {given.results}")
    except UsageError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
