"""Names of earlier versions: read for one version more, each with a warning that says the present one."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any, ClassVar

from vcpo_bench.naming.moved import warn_renamed

_FRONT_DOOR = ("vcpo_bench.methods",)
MOVED_MODULES = {
    "vcpo_bench.methods.params": ("vcpo_bench.naming.parameters",),
    "vcpo_bench.methods.parts.base": _FRONT_DOOR,
    "vcpo_bench.methods.errors": _FRONT_DOOR,
    "vcpo_bench.methods.evidence": _FRONT_DOOR,
    "vcpo_bench.methods.batch": _FRONT_DOOR,
    "vcpo_bench.methods.registry": _FRONT_DOOR,
}
"""Modules that users were told to import from, and where their contents are now."""
MOVED_CLASSES = {"Evidence": "EvidenceView", "Regulariser": "Regularizer"}


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
        warn_renamed(f"{cls.__name__}.{old}", new, depth=5)  # the class statement calls ABCMeta first
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
