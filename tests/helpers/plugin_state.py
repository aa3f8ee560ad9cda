"""Plug-in files that a test loaded, forgotten."""

from vcpo_bench.naming import plugins
from vcpo_bench.naming.catalog import CATALOGS


def forget_plugins() -> None:
    """The grammar is again what ships and what is installed."""
    if plugins._FILES:
        plugins._FILES.clear()
        for catalog in CATALOGS.values():
            catalog.forget()
