"""Standard input and output as a shell may leave them: closed, on a full disk, or in an encoding with few letters."""

from __future__ import annotations

import io
import os
import sys

OUTPUT = "standard output"
"""In place of a path, in errors of writing to it."""


class Output(io.TextIOWrapper):
    """Standard output, whose errors say that it is the one that cannot be written."""

    def write(self, text: str) -> int:
        """Write text.

        Raises:
            OSError: It cannot be written; `filename` is `OUTPUT`.
        """
        try:
            return super().write(text)
        except OSError as error:
            raise OSError(error.errno, error.strerror, OUTPUT) from None

    def flush(self) -> None:
        """Write what is kept back; raises as `write` does."""
        try:
            super().flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, OUTPUT) from None


def prepare_streams() -> None:
    """Make the standard streams usable.

    One that is closed leads nowhere from now on: otherwise the next file that is opened would take its number, and get
    what is printed. A letter that the encoding lacks is spelled, and is no error.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - open to the end
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding, lines = sys.stdout.encoding, sys.stdout.line_buffering
        sys.stdout = Output(sys.stdout.detach(), encoding, "backslashreplace", line_buffering=lines)
