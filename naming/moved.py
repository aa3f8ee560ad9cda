"""Names of the version before: read for one version more, each with a warning that says the present one."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any


def warn_renamed(old: str, new: str, depth: int = 3) -> None:
    """Say that a name is an old one.

    Args:
        old: The name that was used.
        new: The present one.
        depth: How many calls up the line is that used it, this one included.
    """
    text = f"{old} is now {new}; the old name ends with the next version"
    warnings.warn(text, DeprecationWarning, stacklevel=depth)


class _MovedModule(ModuleType):
    """Stands where a module was."""

    def __init__(self, name: str, places: Sequence[str], renamed: Mapping[str, str]) -> None:
        super().__init__(name)
        self._places, self._renamed = tuple(places), dict(renamed)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        present = self._renamed.get(name, name)
        for module in map(import_module, self._places):
            if hasattr(module, present):
                warn_renamed(f"{self.__name__}.{name}", f"{module.__name__}.{present}")
                return getattr(module, present)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def keep_moved_modules(places: Mapping[str, Sequence[str]], renamed: Mapping[str, str] | None = None) -> None:
    """Let modules that were moved be imported from where they were.

    Args:
        places: Old module to the present ones that together have its contents.
        renamed: Old name of a class to its present one.
    """
    for name, present in places.items():
        sys.modules.setdefault(name, _MovedModule(name, present, renamed or {}))
