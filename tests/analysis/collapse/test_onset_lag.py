"""The lag realized where a failure began is not the nominal one, nor the mean of the run."""

from pathlib import Path

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.onset_lag import lag_at_onset
from vcpo_bench.analysis.results import Results


def test_the_last_update_before_the_onset_counts() -> None:
    steps = pd.DataFrame({"key": np.repeat(["early", "late", "well"], 40), "step": np.tile(np.arange(40), 3)})
    results = Results([Path("made")], pd.DataFrame({"key": ["early", "late", "well"]}))
    results.__dict__["steps"] = steps.assign(lag_mean=np.minimum(steps["step"], 16.0))
    onset = [10.0, 30.0, np.nan]
    verdicts = pd.DataFrame({"key": ["early", "late", "well"], "onset": onset, "collapsed": [True, True, False]})
    found = lag_at_onset(results, verdicts)
    assert found[["early", "late"]].tolist() == [9.0, 16.0]
    assert np.isnan(found["well"])


def test_an_onset_without_updates_before_it_has_no_lag() -> None:
    results = Results([Path("made")], pd.DataFrame({"key": ["a"]}))
    results.__dict__["steps"] = pd.DataFrame({"key": ["a"], "step": [0], "lag_mean": [0.0]})
    verdicts = pd.DataFrame({"key": ["a"], "onset": [0.0], "collapsed": [True]})
    assert lag_at_onset(results, verdicts).isna().all()
