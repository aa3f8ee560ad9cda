"""Names of earlier versions: read for one version more, each with a warning that says the present one."""

import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar

MOVED_MODULES = {
    "vcpo_bench.methods.params": "vcpo_bench.naming.parameters",
    "vcpo_bench.methods.parts.base": "vcpo_bench.methods",
}
"""Modules that plug-ins were told to import from, and where their contents are now."""
MOVED_CLASSES = {"Evidence": "EvidenceView", "Regulariser": "Regularizer"}


def warn_renamed(old: str, new: str, depth: int = 3) -> None:
    """Say that a name is an old one.

    Args:
        old: The name that was used.
        new: The present one.
        depth: How many calls up the line is that used it, this one included.
    """
    text = f"{old} is now {new}; the old name ends with the next version"
    warnings.warn(text, DeprecationWarning, stacklevel=depth)


class RenamedAttributes:
    """Old attribute names of a class are read as the present ones."""

    renamed: ClassVar[Mapping[str, str]] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in self.renamed:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        warn_renamed(f"{type(self).__name__}.{name}", self.renamed[name])
        return getattr(self, self.renamed[name])


def accept_old_override(cls: type, old: str, new: str) -> None:
    """Make a method that a class defines under its old name the present one, and let both be called through `super`."""
    if old in vars(cls):
        warn_renamed(f"{cls.__name__}.{old}", new, depth=4)
        setattr(cls, new, vars(cls)[old])
    elif new in vars(cls):
        setattr(cls, old, vars(cls)[new])


def moved_class(module: ModuleType, name: str) -> Any:
    """What an old name in a module stands for now.

    Raises:
        AttributeError: It is no old name.
    """
    if name not in MOVED_CLASSES:
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
    warn_renamed(name, f"{module.__name__}.{MOVED_CLASSES[name]}", depth=4)
    return getattr(module, MOVED_CLASSES[name])


class _MovedModule(ModuleType):
    """Stands where a module was."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        module = import_module(MOVED_MODULES[self.__name__])
        value = getattr(module, MOVED_CLASSES.get(name, name))
        warn_renamed(f"{self.__name__}.{name}", f"{module.__name__}.{MOVED_CLASSES.get(name, name)}")
        return value


def keep_moved_modules() -> None:
    """Let the modules that were moved be imported from where they were."""
    for name in MOVED_MODULES:
        sys.modules.setdefault(name, _MovedModule(name))
