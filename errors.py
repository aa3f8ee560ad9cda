"""The errors a user can cause. Each message says what is wrong and what to do about it."""

from __future__ import annotations

from pathlib import Path


class VcpoBenchError(Exception):
    """Root of every error this project raises on purpose."""


class UsageError(VcpoBenchError, ValueError):
    """The request cannot be carried out as typed (exit code 2)."""


class DamagedResultError(VcpoBenchError, ValueError):
    """A file of a results folder cannot be read, does not match its checksum, or breaks its schema.

    Args:
        what: What is wrong; reads on after the path.
        path: The file or folder; None: `what` names it.

    Attributes:
        what: What is wrong, without the path.
    """

    def __init__(self, what: str, path: Path | None = None) -> None:
        super().__init__(what if path is None else f"{path} {what}")
        self.what = what


class DiskFullError(VcpoBenchError):
    """There is no space left to write to; the message names the folder (exit code 2)."""


NO_TORCH = "this needs torch and safetensors: pip install torch safetensors (docs/python.md says what does without)"


def how_to_install(extra: str) -> str:
    """What installs the packages of an extra, for messages. The package itself is in no index."""
    return f"pip install '.[{extra}]' in a checkout"
