from pathlib import Path

import numpy as np
import pytest

from vcpo_bench.analysis.commands.prediction import analyze_prediction
from vcpo_bench.analysis.diagnostics.pareto_tail import pareto_k
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.prediction.k_hat_signal import TAIL
from vcpo_bench.analysis.prediction.panel import build_panel
from vcpo_bench.analysis.results import load

SIGNALS = all_signals()


@pytest.fixture(scope="module")
def recorded(make_results, tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("recorded")
    make_results(folder, lags=(16,), seeds=(0, 1), record="diagnostics", controls=False)
    return load(folder)


def test_k_hat_is_that_of_the_weights_recorded_so_far(recorded) -> None:
    panel = build_panel(recorded, {"ess": SIGNALS["ess"]}, samples=True)
    key, samples = next(iter(recorded.samples_by_cell()))
    values = panel.values[TAIL][list(panel.runs["key"]).index(key)]
    pooled = samples[(samples["step"] > 57 - 20) & (samples["step"] <= 57)]  # of the updates 40 and 50
    assert set(pooled["step"]) == {40, 50}
    assert values[57] == values[50] == pytest.approx(float(pareto_k(pooled["log_weight"].to_numpy())))
    assert values[59] != values[60]
    assert np.isfinite(values[10:]).all()


def test_without_trajectories_it_is_said_to_be_missing(recorded) -> None:
    assert TAIL not in build_panel(recorded, {"ess": SIGNALS["ess"]}).values
    findings = analyze_prediction(recorded)
    signals = findings.tables["signals"].set_index("signal")["recorded"]
    assert signals[TAIL]
    assert "k_hat" not in findings.documents["detectors.json"]
