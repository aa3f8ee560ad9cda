"""Links the rooms and modules of the package into `.types/vcpo_bench`, where type checkers look for `vcpo_bench`.

    python tools/link_types.py            # after adding, renaming or removing a folder or module at the root

One link to the root would do, but then every tool that follows links walks in a circle. A test fails when a link is
missing or left over.
"""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINKS = ROOT / ".types" / "vcpo_bench"


def wanted() -> dict[str, str]:
    """Name of every link and what it holds: whatever `setup.py` finds at the root, and stubs."""
    found = runpy.run_path(str(ROOT / "setup.py"))
    rooms = {room for room in found["find_rooms"]() if "." not in room}
    stubs = {path.name for path in ROOT.glob("*.pyi")}
    names = sorted(rooms | stubs | {f"{module}.py" for module in found["find_root_modules"]()})
    return {name: f"../../{name}" for name in names}


def present() -> dict[str, str]:
    """Name of every link there is, and what it holds."""
    return {path.name: str(path.readlink()) if path.is_symlink() else "" for path in _entries()}


def _entries() -> list[Path]:
    """Without what Python compiles there when it imports the package from there."""
    return [path for path in LINKS.iterdir() if path.name != "__pycache__"]


def write() -> None:
    """Make the links that are missing and remove the others."""
    LINKS.mkdir(parents=True, exist_ok=True)
    for path in _entries():
        path.unlink()
    for name, target in wanted().items():
        (LINKS / name).symlink_to(target)


if __name__ == "__main__":
    write()
