"""Rewrite cell_keys.json, plans.json and async_plans.json from the configurations and regimes that stand in them.

Run this only together with a new `RULES_VERSION`, or where a regime is meant to change. A new case is added by hand,
without its answer.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.regimes import REGIMES, CellShape
from vcpo_bench.bench.regimes.plan import plan
from vcpo_bench.bench.regimes.virtual_clock import VirtualClock
from vcpo_bench.records import RULES_VERSION

FOLDER = Path(__file__).parent
SHAPE = CellShape(seed=0, prompts=4, responses=2, tokens=12)


def planned(case: dict[str, Any]) -> dict[str, Any]:
    """What each update consumes: trajectories by version of the first and of the last token, and batches held."""
    updates = plan(REGIMES.parse(case["regime"]).schedule(case["staleness"], SHAPE), 14)
    shown = [{"oldest": _counts(one.oldest), "newest": _counts(one.newest), "held": one.held} for one in updates]
    return {"regime": case["regime"], "staleness": case["staleness"], "plan": shown}


def _counts(by_version: Mapping[int, int]) -> dict[str, int]:
    return {str(version): number for version, number in sorted(by_version.items())}


def clocked(case: dict[str, Any]) -> dict[str, Any]:
    """The tickets that each update consumes under a virtual clock, and when the last one ends."""
    regime = REGIMES.parse(case["regime"])
    times, slots = regime.service
    schedule = regime.schedule(case["staleness"], SHAPE)
    clock = VirtualClock(schedule, slots, lambda new, _: [times.group(SHAPE, one, 12) for one in new], times.learner)
    consumed = [sorted(clock.take(update).times) for update in range(25)]
    return {"regime": case["regime"], "staleness": case["staleness"], "consumed": consumed, "now": clock.now}


if __name__ == "__main__":
    for name, answer in (("plans.json", planned), ("async_plans.json", clocked)):
        cases = [json.dumps(answer(case)) for case in json.loads((FOLDER / name).read_text())]
        (FOLDER / name).write_text("[\n" + ",\n".join(cases) + "\n]\n")
    cells = json.loads((FOLDER / "cell_keys.json").read_text())["cells"]
    cells = [one | {"key": CellConfig(**one["config"]).key(one["method_version"])} for one in cells]
    content = {"rules_version": RULES_VERSION, "cells": cells}
    (FOLDER / "cell_keys.json").write_text(json.dumps(content, indent=1) + "\n")
