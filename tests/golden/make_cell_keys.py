"""Rewrite cell_keys.json: run this only together with a new `RULES_VERSION` (or to add cells)."""

import json
from pathlib import Path

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.records import RULES_VERSION

CELLS = [
    ({"method": "vcpo", "staleness": 16, "seed": 0}, 1),
    ({"method": "vcpo", "staleness": 16, "seed": 0}, 2),
    ({"method": "clip(high=0.28)", "staleness": 1, "seed": 2, "lr": 1e-4}, 1),
    ({"method": "reinforce", "staleness": 0, "seed": 7, "task": "chain", "steps": 50}, 1),
    ({"method": "vespo+opob", "staleness": 128, "seed": 0, "prompts": 32, "responses": 4}, 1),
    ({"method": "gspo", "staleness": 4, "seed": 0, "record": "full", "eval_every": 5}, 3),
]

if __name__ == "__main__":
    cells = [{"config": c, "method_version": v, "key": CellConfig(**c).key(v)} for c, v in CELLS]
    content = {"rules_version": RULES_VERSION, "cells": cells}
    Path(__file__).with_name("cell_keys.json").write_text(json.dumps(content, indent=1) + "\n")
