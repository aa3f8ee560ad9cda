"""Signals: nothing from the future, formulas by hand, and the recorded values of every one."""

import importlib.util
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, get_args

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vcpo_bench.analysis.monitoring.signal import PRIMARY, Array, Role, Signal, all_signals, signal
from vcpo_bench.analysis.monitoring.signals.policy import BEGINNING
from vcpo_bench.analysis.monitoring.signals.weights import CAP
from vcpo_bench.analysis.monitoring.trailing import HISTORY, REWARD_WINDOW, kendall_trend
from vcpo_bench.errors import UsageError
from vcpo_bench.records.steps import DIAGNOSTICS

SIGNALS = all_signals()


def updates(number: int = 120, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    spread = np.abs(rng.normal(0.4, 0.2, number))
    columns = {
        "step": np.arange(number),
        "lag_max": np.minimum(np.arange(number), 16),
        "lr": 3e-4 * 0.5,
        "step_scale": 0.5,
        "sampled_reward": np.clip(rng.normal(0.5, 0.1, number), 0, 1),
        "ess_ratio": np.exp(-(spread**2)),
        "ess_ratio_used": np.exp(-(spread**2) / 2),
        "token_ess_ratio": np.exp(-(spread**2) / 12),
        "kl_mu_theta_k3": spread**2 / 24,
        "length_mean": 12.0,
        "log_weight_max": 2.5 * spread,
        "share_clipped": spread / 10,
        "grad_norm": np.exp(rng.normal(0, 0.3, number)),
        "head_grad_norm": np.exp(rng.normal(-1, 0.3, number)),
        "grad_cosine": rng.uniform(-1, 1, number),
        "entropy": rng.uniform(0.5, 1, number),
        "lag_mean": np.minimum(np.arange(number), 15.5),
        "log_weight_var": spread**2,
        "negative_surprisal": rng.uniform(1, 3, number),
        "prompt_information": rng.uniform(0, 1, number),
    }
    for quantile, normal in (("05", -1.645), ("25", -0.674), ("50", 0.0), ("75", 0.674), ("95", 1.645)):
        columns[f"log_weight_q{quantile}"] = normal * spread - spread**2 / 2
    return pd.DataFrame(columns)


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_knows_nothing_of_the_future(name: str) -> None:
    table = updates()
    whole = SIGNALS[name].of(table)
    changed = table.copy()
    changed.iloc[60:, 3:] = 0.123  # everything but the step, the lag and the rate
    np.testing.assert_array_equal(SIGNALS[name].of(table.iloc[:60]), whole[:60])
    np.testing.assert_array_equal(SIGNALS[name].of(changed)[:60], whole[:60])
    assert np.isfinite(whole[60:]).all()


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_names_the_columns_it_needs_and_is_silent_without_them(name: str) -> None:
    one = SIGNALS[name]
    assert set(one.columns) <= DIAGNOSTICS.keys()
    assert np.isfinite(one.of(updates()[list(one.columns)])).any()
    for column in one.columns:
        assert np.isnan(one.of(updates().drop(columns=column))).all()
        assert np.isnan(one.of(updates().assign(**{column: np.nan}))).all()
    assert one.name == name
    assert one.summary


def test_greater_is_more_dangerous() -> None:
    calm = updates()
    worse = calm.assign(
        ess_ratio=calm["ess_ratio"] / 2,
        kl_mu_theta_k3=calm["kl_mu_theta_k3"] * 2,
        grad_norm=calm["grad_norm"] * 2,
        log_weight_max=calm["log_weight_max"] + 1,
        sampled_reward=calm["sampled_reward"] / 2,
    )
    for name in (PRIMARY, "kl", "kl_length", "grad_norm", "max_weight", "reward_low"):
        assert (SIGNALS[name].of(worse) > SIGNALS[name].of(calm)).all(), name


def test_formulas_by_hand() -> None:
    table = updates()
    np.testing.assert_allclose(SIGNALS["ess"].of(table), -np.log(table["ess_ratio"]))
    np.testing.assert_allclose(SIGNALS["kl_length"].of(table), table["kl_mu_theta_k3"] * 12)
    np.testing.assert_allclose(SIGNALS["lr"].of(table), np.log(3e-4), atol=1e-5)
    logs, at = np.log(table["grad_norm"].to_numpy()), 100
    before = logs[at - 50 : at]
    assert SIGNALS["grad_norm_z"].of(table)[at] == pytest.approx((logs[at] - before.mean()) / before.std())
    assert np.isnan(SIGNALS["grad_norm_z"].of(table)[:10]).all()
    reward = table["sampled_reward"].to_numpy()
    means = np.array([reward[max(0, i - 19) : i + 1].mean() for i in range(len(reward))])
    assert SIGNALS["reward_drop"].of(table)[at] == pytest.approx(means[: at + 1].max() - means[at])
    window = reward[at - 19 : at + 1]
    assert SIGNALS["reward_variance"].of(table)[at] == pytest.approx(window.var())
    variance = SIGNALS["reward_variance"].of(table)[at - 49 : at + 1]
    tau = stats.kendalltau(np.arange(50), variance).statistic
    assert SIGNALS["variance_trend"].of(table)[at] == pytest.approx(tau)
    lagged = reward[at - 20 : at]
    expected = np.corrcoef(lagged, window)[0, 1]
    assert SIGNALS["reward_autocorrelation"].of(table)[at] == pytest.approx(expected)


def test_rounding_is_no_variance_of_rewards_that_have_become_equal() -> None:
    rng = np.random.default_rng(1)
    settled = 100
    for level in (0.37, 0.9, 1.0):
        reward = np.concatenate([rng.random(settled), np.full(3 * HISTORY, level)])
        reward[settled // 2] = np.inf  # recorded, and no number
        table = {"sampled_reward": reward}
        assert (SIGNALS["reward_variance"].of(table)[settled + REWARD_WINDOW :] == 0).all()
        assert np.isnan(SIGNALS["reward_autocorrelation"].of(table)[settled + REWARD_WINDOW :]).all()
        assert (SIGNALS["variance_trend"].of(table)[settled + REWARD_WINDOW + HISTORY :] == 0).all()


def test_a_trend_is_the_share_of_pairs_that_rise_less_that_of_those_that_fall() -> None:
    rng = np.random.default_rng(3)
    values = np.where(rng.random(130) < 0.2, np.nan, rng.integers(0, 9, 130))  # with ties and gaps
    values[70] = np.inf
    wanted = []
    for end in range(1, 131):
        window = values[max(0, end - HISTORY) : end]
        signs = [np.sign(b - a) for i, a in enumerate(window) for b in window[i + 1 :]]
        known = [sign for sign in signs if np.isfinite(sign)]
        wanted.append(sum(known) / len(known) if len(known) >= 45 else np.nan)
    np.testing.assert_array_equal(kendall_trend(values), wanted)


def test_rivals_of_ess_by_hand() -> None:
    table = updates()
    assert np.allclose(SIGNALS["log_weight_low"].of(table), -table["log_weight_q05"])
    assert np.allclose(SIGNALS["log_weight_tails"].of(table), table["log_weight_q95"] - table["log_weight_q05"])
    assert np.allclose(SIGNALS["dose"].of(table), table["kl_mu_theta_k3"] * 1.5e-4 * table["lag_mean"])
    gaussian = table.assign(ess_ratio=np.exp(-2 * 12 * table["kl_mu_theta_k3"]))
    assert np.allclose(SIGNALS["ess_beyond_kl"].of(gaussian), 0.0)
    assert np.allclose(SIGNALS["ess_beyond_kl"].of(gaussian.assign(ess_ratio=gaussian["ess_ratio"] / 2)), np.log(2))
    growing = table.assign(length_mean=np.r_[np.full(50, 10.0), np.full(len(table) - 50, 30.0)])
    assert np.allclose(SIGNALS["length_surge"].of(growing), np.r_[np.ones(50), np.full(len(table) - 50, 3.0)])
    assert np.allclose(SIGNALS["prompt_ignored"].of(table), -table["prompt_information"])


def test_the_deviation_from_quantiles_is_close_to_that_of_all_weights() -> None:
    rng = np.random.default_rng(0)
    log_weights = rng.normal(-0.5, 1.0, (20, 128))
    quantiles = {
        f"log_weight_q{q}": np.quantile(log_weights, int(q) / 100, axis=1) for q in ("05", "25", "50", "75", "95")
    }
    table = pd.DataFrame(quantiles | {"log_weight_max": log_weights.max(axis=1)})
    exact = np.abs(np.minimum(np.exp(log_weights), CAP) - 1).mean(axis=1)
    np.testing.assert_allclose(SIGNALS["tis"].of(table), exact, rtol=0.25)


def test_values_that_are_not_finite_are_missing() -> None:
    table = updates().assign(ess_ratio=0.0, grad_norm=np.inf)
    assert np.isnan(SIGNALS["ess"].of(table)).all()
    assert np.isnan(SIGNALS["grad_norm_z"].of(table)).all()


def test_the_values_of_every_signal_are_the_recorded_ones() -> None:
    golden = Path(__file__).parents[2] / "golden"
    spec = importlib.util.spec_from_file_location("make_signals", golden / "make_signals.py")
    assert spec
    assert spec.loader
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    recorded = json.loads((golden / "signals.json").read_text())
    table = maker.run(recorded["columns"])
    assert SIGNALS.keys() >= recorded["values"].keys()
    for name, values in recorded["values"].items():
        expected = np.array(values, dtype=np.float64)
        rounded = 1e-5 if name == "lr" else 1e-12  # equal rates have to tie
        np.testing.assert_allclose(SIGNALS[name].of(table), expected, rtol=1e-12, atol=rounded, err_msg=name)


def test_tables_have_the_primary_signal_first_then_roles_then_names() -> None:
    assert next(iter(SIGNALS)) == PRIMARY
    others = [(get_args(Role).index(one.role), name) for name, one in SIGNALS.items() if name != PRIMARY]
    assert others == sorted(others)


@pytest.mark.parametrize(
    ("updates", "names"),
    [
        (HISTORY, ["grad_norm_z", "head_norm_z", "variance_trend", "autocorrelation_trend"]),
        (REWARD_WINDOW, ["reward_drop", "reward_variance", "reward_autocorrelation"]),
        (BEGINNING, ["length_surge"]),
    ],
)
def test_a_summary_says_over_how_many_updates(updates: int, names: list[str]) -> None:
    """It is a docstring, which cannot hold a constant."""
    assert all(re.search(rf"\b{updates}\b", SIGNALS[name].summary) for name in names)


def test_a_function_of_columns_is_a_signal() -> None:
    @signal("policy", name="twice-entropy", memory=3)
    def twice(entropy: Array) -> Array:
        """Entropy twice,
        in nats.

        And more of it.
        """
        return 2 * entropy

    made = twice()
    assert (made.name, made.summary, made.role) == ("twice-entropy", "Entropy twice, in nats", "policy")
    assert (made.columns, made.memory, made.unfinished()) == (("entropy",), 3, "")
    np.testing.assert_array_equal(made.of(pd.DataFrame({"entropy": [1.0, np.inf]})), [2.0, np.nan])
    np.testing.assert_array_equal(made.of(pd.DataFrame({"other": [1.0]})), [np.nan])


class _NoColumns(Signal):
    role: ClassVar[str] = "weights"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("kind", "lack"),
    [
        (type("A", (Signal,), {"columns": ()}), "does not say its role"),
        (_NoColumns, "does not say its columns"),
        (type("B", (_NoColumns,), {"columns": ()}), "does not define formula"),
        (signal("weight", name="c")(lambda ess_ratio: ess_ratio), "has the role 'weight'; use one of weights, "),  # type: ignore[arg-type]
        (
            signal("weights", name="d")(lambda max_log_weight: max_log_weight),
            "reads 'max_log_weight', which is no column; docs/columns.md lists them",
        ),
    ],
)
def test_a_signal_that_is_not_finished_says_what_it_lacks(kind: type[Signal], lack: str) -> None:
    assert kind.unfinished().startswith(lack)


@pytest.mark.parametrize(
    ("formula", "returned"),
    [
        (lambda ess_ratio: ess_ratio.mean(), "float64, not [3] numbers"),
        (lambda ess_ratio: ess_ratio[1:], "[2], not [3] numbers"),
        (lambda ess_ratio: None, "NoneType, not [3] numbers"),
        (lambda ess_ratio: ["a"] * 3, "list, not numbers"),
    ],
)
def test_a_formula_that_returns_something_else_is_refused(formula: Callable[..., Array], returned: str) -> None:
    made = signal("weights", name="own")(formula)()
    with pytest.raises(UsageError, match=re.escape(f"signal own: its formula returned {returned}")):
        made.of(pd.DataFrame({"ess_ratio": [0.5, 0.25, 0.125]}))
