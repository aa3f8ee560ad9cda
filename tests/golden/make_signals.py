"""Rewrite signals.json: the values of every signal on a run of random columns. Run this only when a signal is new."""

import json
import random
from pathlib import Path

import numpy as np
import pandas as pd

from vcpo_bench.analysis.monitoring.signal import all_signals

UPDATES = 130


def run(columns: list[str]) -> pd.DataFrame:
    """A run whose columns are random in [0, 1), with holes; `step` counts."""
    source = random.Random(0)
    table = pd.DataFrame({name: [source.random() for _ in range(UPDATES)] for name in sorted(columns)})
    for name in sorted(columns):
        table.loc[[source.random() < 0.05 for _ in range(UPDATES)], name] = np.nan
    return table.assign(step=range(UPDATES))


if __name__ == "__main__":
    signals = all_signals()
    table = run(sorted({column for signal in signals.values() for column in signal.columns}))
    values = {name: [None if v != v else v for v in one.of(table).tolist()] for name, one in signals.items()}
    content = {"columns": sorted(set(table.columns)), "values": values}
    Path(__file__).with_name("signals.json").write_text(json.dumps(content) + "\n")
