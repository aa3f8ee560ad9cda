"""Rewrite defaults.json: run this only together with a new `RULES_VERSION`, or to add names."""

import json
from pathlib import Path
from typing import Any

from vcpo_bench.analysis.monitoring.signal import SIGNALS
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.bench.samplers.catalog import SAMPLERS
from vcpo_bench.bench.tasks.catalog import TASKS
from vcpo_bench.methods.assembly.catalog import METHODS
from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.component import parameters
from vcpo_bench.records import RULES_VERSION

CATALOGS: dict[str, Catalog] = {each.kind: each for each in (METHODS, REGIMES, SAMPLERS, SIGNALS, TASKS)}


def written(kind: str, name: str) -> dict[str, str]:
    """The default of every parameter of a name, as an expression would spell it, and the year of its paper."""
    found = CATALOGS[kind].get(name)
    year = {"(year)": str(found.year)} if getattr(found, "year", None) else {}
    return year | {each: parameter.write(default) for each, (default, parameter) in parameters(found).items()}


def settings() -> dict[str, Any]:
    """The default of every setting of a cell."""
    return CellConfig(method="clip", staleness=0, seed=0).values()


if __name__ == "__main__":
    content = {kind: {name: written(kind, name) for name in sorted(each.kinds)} for kind, each in CATALOGS.items()}
    text = json.dumps({"rules_version": RULES_VERSION, "settings": settings()} | content, indent=1)
    Path(__file__).with_name("defaults.json").write_text(text + "\n")
