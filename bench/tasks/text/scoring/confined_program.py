"""The program of the process in which a package judges text of a model; `confined` starts it and talks to it.

Scorers of reasoning-gym and math-verify hand the answer to `eval` or to sympy, which evaluates it. Here that can only
compute: code made from text may use the names of `HARMLESS`, and nothing may be written, started or connected to.
Standard library only, so that it starts fast and needs nothing of this project.
"""

from __future__ import annotations

import importlib
import os
import pickle
import resource
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from types import CodeType
from typing import Any, BinaryIO

LENGTH = struct.Struct("<I")
"""Before every message: its length in bytes."""
READY, FAILED = b"ready", b"failed"

MEMORY = 4 * 2**30
"""Largest address space, in bytes."""

_WRITTEN = (
    *("Integer", "Float", "Rational", "Symbol", "Add", "Mul", "Pow", "evaluate"),
    *("Eq", "Ne", "Lt", "Le", "Gt", "Ge"),
)
_CONSTANTS = ("E", "I", "pi", "oo", "zoo", "nan", "C", "x", "X", "y", "z", "n")
_FUNCTIONS = (
    *("sqrt", "cbrt", "root", "exp", "log", "ln", "Abs", "factorial", "gamma", "erf", "Ei", "Si", "Ci", "li"),
    *("sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "acot"),
    *("sinh", "cosh", "tanh", "coth", "asinh", "acosh", "atanh"),
)
HARMLESS = frozenset((*_WRITTEN, *_CONSTANTS, *_FUNCTIONS))
"""Names that code made from text may use: what sympy's parser writes, elementary functions and constants."""

_PARSER = compile("from sympy import *", "", "exec")  # what sympy's parser itself runs before it reads a text
_SYMPY = (_PARSER.co_code, _PARSER.co_names, _PARSER.co_consts)
_READING = os.O_RDONLY | os.O_CLOEXEC
_LOOKING = {"os.listdir", "os.scandir"}  # a late import looks for its file
_FORBIDDEN = ("os.", "subprocess.", "socket.", "ctypes.", "shutil.", "pty.", "signal.", "urllib.", "http.", "pickle.")


class ForbiddenError(Exception):
    """Text of a model tried more than to compute."""


def main() -> None:
    """Read what to judge with, then judge one request after another until the other side leaves."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what packages print is no answer
    settings = pickle.loads(_read(requests))
    sys.path[:] = settings["path"]
    sys.dont_write_bytecode = True
    try:
        judge = _JUDGES[settings["judge"]](settings["of"])
    except Exception as error:
        _write(answers, FAILED + f" {type(error).__name__}: {error}".encode())
        return
    _confine()
    _write(answers, READY)
    while True:
        request = pickle.loads(_read(requests))
        signal.setitimer(signal.ITIMER_PROF, settings["seconds"])  # its default action ends even a loop in C
        right = _judged(judge, request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _write(answers, b"1" if right else b"0")


def _judged(judge: Callable[..., bool], request: tuple[Any, ...]) -> bool:
    """The verdict; whatever the package raises on a text is a wrong answer."""
    global _armed
    _armed = True
    try:
        return judge(*request)
    except (Exception, SystemExit):
        return False
    finally:
        _armed = False


def _reasoning_gym(dataset: str) -> Callable[..., bool]:
    package = importlib.import_module("reasoning_gym")  # a checker without it would find our file of that name
    scorer = package.create_dataset(dataset, size=1, seed=0)
    return lambda answer, entry: bool(scorer.score_answer(answer, entry) >= 1)


def _math_verify(_: str) -> Callable[..., bool]:
    import math_verify

    def read(text: str) -> Any:
        return math_verify.parse(f"$\\boxed{{{text}}}$", parsing_timeout=None)

    return lambda right, given: bool(math_verify.verify(read(right), read(given), timeout_seconds=None))


_JUDGES = {"reasoning-gym": _reasoning_gym, "math-verify": _math_verify}


def _confine() -> None:
    """Limit this process for good: memory, files, processes, and what its code may do while it judges."""
    limits = ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0))
    for limit, value in (*limits, (resource.RLIMIT_NPROC, 0)):
        with suppress(ValueError, OSError):  # a system may not know one, or allow less already
            resource.setrlimit(limit, (value, value))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    sys.addaudithook(_watch)


_armed = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Python calls this before anything that matters outside the interpreter; an exception prevents it."""
    if not _armed:
        return
    if event == "exec":
        _check_code(arguments[0])
    elif event == "open":
        if isinstance(arguments[2], int) and arguments[2] & ~_READING:
            raise ForbiddenError(f"open {arguments[0]}")
    elif event.startswith(_FORBIDDEN) and event not in _LOOKING:
        raise ForbiddenError(event)


def _check_code(code: object) -> None:
    """Code of a file is a package's own; code from text may use harmless names and define nothing."""
    if not isinstance(code, CodeType):
        raise ForbiddenError("code of another kind")
    if code.co_filename.startswith("<frozen ") or os.path.isfile(code.co_filename):
        return
    if (code.co_code, code.co_names, code.co_consts) == _SYMPY:
        return
    if foreign := set(code.co_names) - HARMLESS:
        raise ForbiddenError(f"the names {', '.join(sorted(foreign))}")
    if any(isinstance(constant, CodeType) for constant in code.co_consts):
        raise ForbiddenError("a function")


def _read(stream: BinaryIO) -> bytes:
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        sys.exit()
    return stream.read(LENGTH.unpack(head)[0])


def _write(stream: BinaryIO, message: bytes) -> None:
    stream.write(LENGTH.pack(len(message)) + message)
    stream.flush()


if __name__ == "__main__":
    main()
