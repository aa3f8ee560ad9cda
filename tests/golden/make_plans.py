"""Rewrite plans.json: what every regime consumes when. Run this only when a regime is meant to change."""

import json
from pathlib import Path

from vcpo_bench.bench.regimes import REGIMES, CellShape
from vcpo_bench.bench.regimes.plan import plan

SHAPE = CellShape(seed=0, prompts=4, responses=2, tokens=12)
UPDATES = 14
CASES = [
    ("fifo", 0),
    ("fifo", 3),
    ("fifo(fill=hold)", 3),
    ("fifo(publish_every=4)", 2),
    ("minibatch", 4),
    ("minibatch(epochs=3)", 5),
    ("random", 5),
    ("random(unit=trajectory)", 5),
    ("random(geometric)", 8),
    ("random(poisson,mean=2)", 5),
    ("random(two-point,share=0.3)", 6),
    ("random(trace=[0 3 3 1 5])", 5),
    ("inflight", 3),
    ("inflight(every=4)", 5),
    ("inflight(cache=recompute)", 15),
    ("replay(fraction=0.5)", 4),
]


def rows(regime: str, staleness: int) -> list[dict[str, object]]:
    """One entry per update: trajectories by version of the first and of the last token, and batches held."""
    schedule = REGIMES.parse(regime).schedule(staleness, SHAPE)
    return [
        {
            "oldest": {str(v): n for v, n in sorted(each.oldest.items())},
            "newest": {str(v): n for v, n in sorted(each.newest.items())},
            "held": each.held,
        }
        for each in plan(schedule, UPDATES)
    ]


if __name__ == "__main__":
    plans = [{"regime": regime, "staleness": k, "plan": rows(regime, k)} for regime, k in CASES]
    Path(__file__).with_name("plans.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in plans) + "\n]\n")
