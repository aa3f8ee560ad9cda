"""Python files with methods, tasks, regimes ... of one's own (`--plugin my_method.py`)."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from vcpo_bench.naming.catalog import CATALOGS
from vcpo_bench.naming.entries import defined, one_line
from vcpo_bench.naming.errors import PluginError

_FILES: dict[str, Path] = {}  # by digest


def load_plugin(path: str | Path) -> list[str]:
    """Load a Python file; every named subclass of a base class of ours becomes part of the grammar.

    Args:
        path: The file. Loading it again replaces what it defined before.

    Returns:
        The names it added.

    Raises:
        PluginError: It cannot be read, fails while running, or holds nothing to add.
    """
    file = Path(path)
    if not file.is_file():
        raise PluginError(f"plug-in {file} does not exist")
    module = _run(file)
    kinds = defined(module)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:10]
    _FILES[digest] = file.resolve()
    added = []
    for catalog in CATALOGS.values():
        own = [kind for kind in kinds if issubclass(kind, catalog.base)]
        for kind in own:
            kind.source = digest
        if own:
            catalog.replace(str(file), own)
            added += [kind.name for kind in own]
    if not added:
        bases = ", ".join(name for _, catalog in sorted(CATALOGS.items()) for name in catalog.to_subclass)
        raise PluginError(f"plug-in {file} holds no named subclass of one of ours ({bases})")
    return added


def fault_of_plugin(error: BaseException) -> str:
    """Where in a plug-in file an error arose, `plug-in FILE, line N: Type: message`; empty: in none."""
    files = {str(file) for file in _FILES.values()}
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        if file in files or (not file.startswith("<") and str(Path(file).resolve()) in files):
            return f"plug-in {file}, line {line}: {one_line(error)}"
    return ""


def plugin_files(digests: str) -> tuple[Path, ...]:
    """The files that another process must load to know what comes from them.

    Args:
        digests: What `plugin_digests` returned, in a process that has loaded the files.

    Raises:
        PluginError: A file with such a digest has not been loaded.
    """
    wanted = [digest for digest in digests.split("+") if digest]
    if missing := [digest for digest in wanted if digest not in _FILES]:
        raise PluginError(f"no plug-in with the digest {missing[0]} is loaded; give its file with --plugin")
    return tuple(_FILES[digest] for digest in wanted)


def plugin_digests(*sources: str) -> str:
    """The digests of the plug-in files that several components come from, sorted and joined with `+`.

    Args:
        sources: `Component.source` of each, or what this function returned before; empty ones add nothing.
    """
    return "+".join(sorted({digest for source in sources for digest in source.split("+")} - {""}))


def _run(file: Path) -> ModuleType:
    """The module of a file; files of the same name in different folders are different modules."""
    name = f"vcpo_bench_plugin_{file.stem}_{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise PluginError(f"plug-in {file} is not a Python file; give a path ending in .py")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses look annotations up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
        raise PluginError(f"plug-in {file} failed while loading: {one_line(error)}") from error
    return module
