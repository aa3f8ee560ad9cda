"""Rewrite async_plans.json: which tickets every update consumes under a virtual clock, and when the last one ends."""

import json
from pathlib import Path

from vcpo_bench.bench.regimes import REGIMES, CellShape
from vcpo_bench.bench.regimes.virtual_clock import VirtualClock

SHAPE = CellShape(seed=0, prompts=4, responses=2, tokens=12)
CASES = [
    ("async(clock=virtual,sampler=0.5,learner=2,slots=4)", 3),
    ("async(clock=virtual,sampler=3,learner=1,slots=4)", 3),
    ("async(clock=virtual,sampler=1,learner=1,straggler=0.15,slots=6)", 4),
    ("async(clock=virtual,sampler=1,learner=1,straggler=0.15,slots=6,overflow=drop)", 4),
]

if __name__ == "__main__":
    plans = []
    for text, k in CASES:
        regime = REGIMES.parse(text)
        times, slots = regime.service
        begin = lambda tickets, _, t=times: [t.group(SHAPE, ticket, 12) for ticket in tickets]  # noqa: E731
        clock = VirtualClock(regime.schedule(k, SHAPE), slots, begin, times.learner)
        consumed = [sorted(clock.take(update).times) for update in range(25)]
        plans.append({"regime": text, "staleness": k, "consumed": consumed, "now": clock.now})
    Path(__file__).with_name("async_plans.json").write_text("[\n" + ",\n".join(map(json.dumps, plans)) + "\n]\n")
