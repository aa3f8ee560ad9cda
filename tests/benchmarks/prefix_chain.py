"""The published tables of the prefix chain beside ours: `python tests/benchmarks/prefix_chain.py [SEEDS]`.

Published: the values in the figures of "Is Frontier Asynchronous RL Solved?" (Huang, 2026), seed 3, 7,000 updates.
Ours: mean over seeds with the 95% Student-t interval; a batch "inf" is the exact dynamics without sampling noise, set
beside the largest published batch.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.append(str(Path(__file__).parents[1] / "helpers"))
from prefix_chain_table import TabularChain, Weighting, limit, train

UPDATES = 7000
LAGS = (0, 100, 250, 500, 1000)
NAMES = {"sequence": "Seq IS", "token": "Token IS", "geometric": "GeoMean IS"}
SWEEP = {
    ("sequence", 8): (0.6475, 0.5768, 0.0465, 0.1229, 0.0156),
    ("sequence", 32): (0.7128, 0.7156, 0.7083, 0.4227, 0.1773),
    ("sequence", 64): (0.7251, 0.7233, 0.7201, 0.7071, 0.4440),
    ("sequence", 128): (0.7309, 0.7328, 0.7332, 0.7286, 0.7185),
    ("sequence", math.inf): (0.7514, 0.7512, 0.7510, 0.7504, 0.7499),
    ("token", 8): (0.6475, 0.5966, 0.4381, 0.2976, 0.1723),
    ("token", math.inf): (0.751, 0.700, 0.597, 0.415, 0.223),
    ("geometric", 8): (0.648, 0.570, 0.371, 0.263, 0.143),
    ("geometric", math.inf): (0.751, 0.661, 0.516, 0.334, 0.180),
}
HORIZONS = {
    "sequence": {128: 0.9853, 256: 0.9733, 512: 0.9396, 1024: 0.7487},
    "token": {128: 0.9843, 256: 0.9694, 512: 0.9090, 1024: 0.4126},
    "geometric": {128: 0.9687, 256: 0.9363, 512: 0.8131, 1024: 0.3322},
}
CAPS = {
    8: {math.inf: 0.1229, 2.0: 0.4674, 8.0: 0.4198, 32.0: 0.1590, 128.0: 0.1229},
    16: {math.inf: 0.0420, 2.0: 0.5594, 8.0: 0.5780, 32.0: 0.4445, 128.0: 0.0556},
    32: {math.inf: 0.4227, 2.0: 0.6499, 8.0: 0.6837, 32.0: 0.6581, 128.0: 0.5226},
}


def measured(weighting: Weighting, lag: int, batch: float, seeds: int, horizon: int = 1024) -> str:
    """Mean and interval over seeds, or the limit of an infinite batch."""
    chain = TabularChain(horizon)
    if math.isinf(batch):
        return f"{limit(chain, weighting, lag, UPDATES):.3f}"
    ends = np.array([train(chain, weighting, lag, int(batch), UPDATES, seed) for seed in range(seeds)])
    half = stats.t.ppf(0.975, seeds - 1) * ends.std(ddof=1) / math.sqrt(seeds) if seeds > 1 else math.nan
    return f"{ends.mean():.3f} ± {half:.3f}"


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print one Markdown table, line by line as it is computed."""
    heads = list(headings)
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def main(seeds: int) -> None:
    """Print the three tables."""
    table(
        ["estimator", "B", *(f"K={lag}" for lag in LAGS)],
        (
            [NAMES[name], f"{batch:g}"]
            + [
                f"{old:.3f} / {measured(Weighting(name), lag, batch, seeds)}"
                for lag, old in zip(LAGS, row, strict=True)
            ]
            for (name, batch), row in SWEEP.items()
        ),
    )
    table(
        ["estimator", *(f"H={horizon}" for horizon in HORIZONS["token"])],
        (
            [NAMES[name]]
            + [f"{old:.3f} / {measured(Weighting(name), 500, math.inf, 1, horizon)}" for horizon, old in row.items()]
            for name, row in HORIZONS.items()
        ),
    )
    table(
        ["B", *(f"cap {cap:g}" for cap in CAPS[8])],
        (
            [str(batch)]
            + [f"{old:.3f} / {measured(Weighting(cap=cap), 500, batch, seeds)}" for cap, old in row.items()]
            for batch, row in CAPS.items()
        ),
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
