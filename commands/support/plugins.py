"""`--plugin`: files with methods, tasks, regimes, samplers or signals of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def load_plugins(files: Sequence[Path] | None) -> tuple[Path, ...]:
    """Load the files and return their absolute paths, which worker processes load again.

    Raises:
        PluginError: A file cannot be loaded or defines nothing.
    """
    if not files:
        return ()
    from vcpo_bench.commands.support.kinds.find import load_catalogs
    from vcpo_bench.naming.errors import PluginError
    from vcpo_bench.naming.plugins import load_plugin

    if missing := [path for path in files if not path.is_file()]:
        raise PluginError(f"--plugin {missing[0]}: there is no such file")

    load_catalogs()  # what a file may define is known from them
    paths = tuple(path.resolve() for path in files)
    for path in paths:
        load_plugin(path)
    return paths
