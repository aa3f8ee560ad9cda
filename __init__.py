"""vcpo-bench: which stabilizer survives at your policy lag, why a run collapsed, and whether you could have known.

`load` reads results into pandas tables, `figure` draws them, `run` trains a grid, `diagnose` reads the log of any
trainer, `Monitor` watches a run, `methods` holds the stabilizers. Each is imported when it is first used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_OFFERED = {
    "Monitor": ("vcpo_bench.analysis", "Monitor"),
    "Tables": ("vcpo_bench.api.tables", "Tables"),
    "diagnose": ("vcpo_bench.api.diagnose_log", "diagnose"),
    "figure": ("vcpo_bench.api.draw_figure", "figure"),
    "load": ("vcpo_bench.api.tables", "load"),
    "methods": ("vcpo_bench.methods", ""),
    "run": ("vcpo_bench.api.run_grid", "run"),
}
"""Where each name comes from: a module, and the name in it; empty: the module itself."""

__all__ = ["Monitor", "Tables", "__version__", "diagnose", "figure", "load", "methods", "run"]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: `import vcpo_bench` itself reads this file and nothing else."""
    if name not in _OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _OFFERED[name]
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    return sorted(__all__)
