"""Recompute the golden numbers of `tests/golden/analysis_statistics.json` with the packages they came from.

Runs in the environment that `.ci/integrations.d/analysis_oracles.sh` builds; skipped where those packages are absent.
`python tests/integrations/test_analysis_oracles.py` writes the file anew.
"""

import json
from pathlib import Path

import numpy as np
import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "analysis_statistics.json"
THRESHOLDS = [0.0, 0.25, 0.5, 0.75, 1.0]


def inputs() -> dict:
    """Arrays that the oracles and our code are both given; rounded so that the file holds them exactly."""
    rng = np.random.default_rng(20260)
    time = np.minimum(rng.weibull(1.3, 60) * 200 * np.repeat([1.0, 0.6, 1.4], 20), 300).round(-1)
    return {
        "log_weights": {
            "lognormal_128": rng.normal(0, 1, 128).round(6).tolist(),
            "lognormal_wide_1000": rng.normal(0, 4, 1000).round(6).tolist(),
            "pareto_0.7_400": (0.7 * rng.standard_exponential(400)).round(6).tolist(),
            "light_225": (-rng.standard_exponential(225)).round(6).tolist(),
        },
        "scores": rng.normal([0.2, 0.9, 0.5, 0.7], 0.3, (6, 4)).round(4).tolist(),
        "other_scores": rng.normal([0.3, 0.6, 0.5, 0.2], 0.3, (6, 4)).round(4).tolist(),
        "time": time.tolist(),
        "event": (time < 300).tolist(),
        "group": np.repeat(["a", "b", "c"], 20).tolist(),
        "stratum": np.tile(["x", "y"], 30).tolist(),
        "p_values": [0.001, 0.02, 0.04, 0.013, 0.8],
        "shares": [[0, 5], [3, 10], [7, 7]],
    }


def pareto(given: dict) -> dict:
    from arviz_stats.base import array_stats

    return {name: float(array_stats.psislw(-np.array(values))[1]) for name, values in given["log_weights"].items()}


def rliable_numbers(given: dict) -> dict:
    from rliable import library, metrics

    scores, other = np.array(given["scores"]), np.array(given["other_scores"])
    functions = {
        "iqm": metrics.aggregate_iqm,
        "median": metrics.aggregate_median,
        "mean": metrics.aggregate_mean,
        "optimality_gap": metrics.aggregate_optimality_gap,
    }
    found: dict = {name: float(function(scores)) for name, function in functions.items()}
    np.random.seed(0)  # its random_state argument has no effect: it draws from the global state
    _, spread = library.get_interval_estimates(
        {"a": scores}, lambda x: np.array([function(x) for function in functions.values()]), reps=5000
    )
    found["intervals"] = dict(zip(functions, spread["a"].T.tolist(), strict=True))
    found["probability_of_improvement"] = float(metrics.probability_of_improvement(scores, other))
    found["profile"] = [float(library.run_score_deviation(scores, threshold)) for threshold in THRESHOLDS]
    return found


def lifelines_numbers(given: dict) -> dict:
    from lifelines import KaplanMeierFitter
    from lifelines.statistics import multivariate_logrank_test
    from lifelines.utils import restricted_mean_survival_time

    time, event = np.array(given["time"]), np.array(given["event"])
    fitter = KaplanMeierFitter().fit(time, event)
    mean, variance = restricted_mean_survival_time(fitter, t=250, return_variance=True)
    test = multivariate_logrank_test(time, given["group"], event)
    return {
        "time": fitter.survival_function_.index.tolist(),
        "survival": fitter.survival_function_.iloc[:, 0].tolist(),
        "interval": fitter.confidence_interval_survival_function_.to_numpy().tolist(),
        "median": float(fitter.median_survival_time_),
        "restricted_mean_250": float(mean),
        "restricted_variance_250": float(variance),
        "log_rank": [float(test.test_statistic), float(test.p_value)],
    }


def statsmodels_numbers(given: dict) -> dict:
    from statsmodels.duration.survfunc import survdiff
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.proportion import proportion_confint

    event = np.array(given["event"]).astype(int)
    chi2, p = survdiff(np.array(given["time"]), event, np.array(given["group"]), strata=np.array(given["stratum"]))
    return {
        "stratified_log_rank": [float(chi2), float(p)],
        "holm": multipletests(given["p_values"], method="holm")[1].tolist(),
        "wilson": [list(map(float, proportion_confint(k, n, method="wilson"))) for k, n in given["shares"]],
    }


ORACLES = {
    "arviz_stats": pareto,
    "rliable": rliable_numbers,
    "lifelines": lifelines_numbers,
    "statsmodels": statsmodels_numbers,
}
PINS = {"arviz_stats": "arviz-stats==0.8.0", "rliable": "rliable==1.2.0", "lifelines": "lifelines==0.30.3"} | {
    "statsmodels": "statsmodels==0.15.0"
}


def flat(numbers: object) -> list[float]:
    if isinstance(numbers, dict):
        return [one for key in sorted(numbers) for one in flat(numbers[key])]
    if isinstance(numbers, list):
        return [one for item in numbers for one in flat(item)]
    assert isinstance(numbers, int | float)
    return [float(numbers)]


@pytest.mark.parametrize("package", ORACLES)
@pytest.mark.filterwarnings("ignore")
def test_the_committed_numbers_are_the_oracles(package):
    pytest.importorskip(package, reason="runs in .ci/integrations analysis_oracles")
    golden = json.loads(GOLDEN.read_text())
    computed = flat(ORACLES[package](golden["inputs"]))
    assert computed == pytest.approx(flat(golden[package]), rel=1e-9, nan_ok=True)


if __name__ == "__main__":
    data = inputs()
    numbers = {package: oracle(data) for package, oracle in ORACLES.items()}
    provenance = "computed by tests/integrations/test_analysis_oracles.py with " + ", ".join(PINS.values())
    GOLDEN.write_text(json.dumps({"provenance": provenance, "inputs": data} | numbers) + "\n")
