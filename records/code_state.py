"""Which commit this package is."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]


def code_state(folder: Path = PACKAGE) -> dict[str, Any]:
    """Commit that the package runs from or was built from, if known, and whether it had uncommitted changes."""
    if not (folder / ".git").exists():
        built = folder / "built_from.json"  # written by setup.py
        known = json.loads(built.read_text(encoding="utf-8")) if built.exists() else {}
        return {name: known.get(name) for name in ("commit", "uncommitted")}
    commit = _git(folder, "rev-parse", "HEAD")
    return {"commit": commit, "uncommitted": bool(_git(folder, "status", "--porcelain")) if commit else None}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
