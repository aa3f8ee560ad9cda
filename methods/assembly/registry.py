"""What methods and parts exist: found by listing the folders and the entry points, never from a list to edit."""

import hashlib
import importlib
import importlib.util
import inspect
import pkgutil
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from vcpo_bench.methods import parts
from vcpo_bench.methods.assembly.method import Method
from vcpo_bench.methods.core.component import SLOTS, Component
from vcpo_bench.methods.core.errors import PluginError

ENTRY_POINT_GROUP = "vcpo_bench.methods"


@dataclass(frozen=True)
class Broken:
    """A plug-in that could not be loaded: shown in listings, never fatal."""

    name: str
    origin: str
    error: str


@dataclass(frozen=True)
class Registry:
    """Everything that can appear in an expression.

    Attributes:
        components: Name to class, methods and parts alike.
        origins: Name to where the class came from.
        broken: Plug-ins that failed to load.
    """

    components: dict[str, type[Component]]
    origins: dict[str, str]
    broken: list[Broken]

    def add(self, kind: type[Component], origin: str) -> None:
        """Register a class.

        Raises:
            PluginError: When its name is taken by another class or its slot does not exist.
        """
        known = self.components.get(kind.name)
        if known is not None and known is not kind and self.origins[kind.name] != origin:  # the same file: reloaded
            raise PluginError(
                f"{origin} defines {kind.name!r}, which {self.origins[kind.name]} already does; rename it"
            )
        if kind.slot not in SLOTS:
            raise PluginError(f"{origin} defines {kind.name!r} with slot {kind.slot!r}; use one of {', '.join(SLOTS)}")
        self.components[kind.name] = kind
        self.origins[kind.name] = origin

    def names(self, slot: str | None = None) -> list[str]:
        """Names in alphabetical order, of one slot or of all."""
        return sorted(name for name, kind in self.components.items() if slot in (None, kind.slot))


def components_of(module: ModuleType) -> list[type[Component]]:
    """The named component classes a module itself defines."""
    return [
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Component) and kind.__module__ == module.__name__ and kind.__dict__.get("name")
    ]


@lru_cache(maxsize=1)
def registry() -> Registry:
    """The registry of this process, filled on first use."""
    found = Registry({}, {}, [])
    for package in (parts, importlib.import_module("vcpo_bench.methods")):
        for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda each: each.name):
            if info.ispkg:
                continue
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            for kind in components_of(module):
                found.add(kind, f"{package.__name__}.{info.name}")
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            _add_loaded(found, point.load(), f"entry point {point.value}")
        except Exception as error:
            found.broken.append(Broken(point.name, point.value, f"{type(error).__name__}: {error}"))
    return found


def _add_loaded(found: Registry, loaded: object, origin: str) -> list[str]:
    if isinstance(loaded, ModuleType):
        kinds = components_of(loaded)
    else:
        kinds = [loaded] if isinstance(loaded, type) and issubclass(loaded, Component) else []
    if not kinds:
        raise PluginError(f"{origin} holds no subclass of vcpo_bench.methods.Method or of a part with a name")
    for kind in kinds:
        found.add(kind, origin)
    return [kind.name for kind in kinds]


def load_plugin(path: str | Path) -> list[str]:
    """Load a Python file with methods or parts of one's own (`--plugin my_method.py`).

    Args:
        path: The file. Every named subclass of `Method` or of a part becomes part of the grammar.

    Returns:
        The names it added.

    Raises:
        PluginError: When it cannot be read, fails while running, or holds nothing to add.
    """
    file = Path(path)
    if not file.is_file():
        raise PluginError(f"plug-in {file} does not exist")
    module_name = f"vcpo_bench_plugin_{file.stem}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise PluginError(f"plug-in {file} is not a Python file; give a path ending in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise PluginError(f"plug-in {file} failed while loading: {type(error).__name__}: {error}") from error
    for kind in components_of(module):
        kind.source = hashlib.sha256(file.read_bytes()).hexdigest()[:10]
    return _add_loaded(registry(), module, str(file))


def method_names() -> list[str]:
    """Names of all methods, in alphabetical order: what an expression may start with.

    Parts that make a stabilizer of their own (`opsm` for `clip+opsm`) are among them.
    """
    known = registry().components
    return [name for name in registry().names() if issubclass(known[name], Method) or known[name].host]


def part_names() -> list[str]:
    """Names of all parts, in alphabetical order."""
    return [name for name in registry().names() if not issubclass(registry().components[name], Method)]


def broken_plugins() -> list[Broken]:
    """Plug-ins that failed to load, with their errors."""
    return list(registry().broken)
