"""The lag that a failing run realized when it failed: at fixed lag k, data is younger than k at the beginning."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vcpo_bench.analysis.results import Results


def lag_at_onset(results: Results, verdicts: pd.DataFrame) -> pd.Series[float]:
    """Mean realized lag, in updates, of the last update before the onset of each run, by key.

    NaN for a run that did not fail, or that recorded no lag there.

    Args:
        results: The runs.
        verdicts: Of `analysis.collapse.rule.events`: `key`, `onset` and `failed`.
    """
    onset = verdicts.set_index("key")["onset"].where(verdicts.set_index("key")["collapsed"].astype(bool))
    steps = results.step_columns("lag_mean")
    before = steps[steps["step"] < steps["key"].map(onset)]
    last = before.loc[before.groupby("key", sort=False)["step"].idxmax(), ["key", "lag_mean"]]
    return last.set_index("key")["lag_mean"].reindex(onset.index).astype(np.float64)
