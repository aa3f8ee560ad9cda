"""Walls of the operating system around the process that interprets code of a model, where the system has them.

They are the second line of defense: the interpreter itself offers a program no file, socket, process or environment.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

_ADDRESS_SPACE = 4 * 2**20  # KiB; the interpreter counts its own heap, this bounds what it does not count
_LIMITS = f"ulimit -c 0; ulimit -f 0; ulimit -n 64; ulimit -v {_ADDRESS_SPACE}"
_SECONDS = 10.0
"""Time for the check whether a wall stands here; many containers forbid it."""

_BUBBLEWRAP = (
    *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"),
    *("--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
    *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/"),
)
_UNSHARE = (
    *("unshare", "--user", "--map-root-user", "--net", "--ipc", "--uts", "--mount", "--pid", "--fork"),
    *("--kill-child", "--mount-proc"),
)


class Wall(NamedTuple):
    """Something that stands between a process and the machine.

    Attributes:
        name: The program that builds it; empty: nothing stands there.
        meaning: What it keeps out, for `doctor`.
    """

    name: str
    meaning: str


_WALLS = (
    Wall("bwrap", "own network, processes and file system; of the disk only the interpreter and its libraries"),
    Wall("unshare", "own network and processes; the disk is visible, as far as the user may read it"),
)
NONE = Wall("", "no wall of the system: the interpreter alone isolates")


@cache
def strongest() -> Wall:
    """The strongest wall that can be built here."""
    for wall in _WALLS:
        if shutil.which(wall.name) and _stands(wall):
            return wall
    return NONE


def _stands(wall: Wall) -> bool:
    try:
        done = subprocess.run(
            ["sh", "-c", _line(wall, Path(shutil.which("true") or "/usr/bin/true"))],
            env={"PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def launcher(wall: Wall, program: Path) -> str:
    """A shell script that becomes `program` behind a wall, with limits and without any environment of ours."""
    return f"#!/bin/sh\n{_LIMITS}\n{_line(wall, program)}\n"


def _line(wall: Wall, program: Path) -> str:
    """The command that becomes the program behind a wall."""
    path = str(program.resolve())
    inside = {
        "bwrap": (*_BUBBLEWRAP, "--ro-bind", path, "/interpreter", "/interpreter"),
        "unshare": (*_UNSHARE, path),
        "": (path,),
    }[wall.name]
    return f'exec env -i PATH={os.defpath} {shlex.join(inside)} "$@"'
