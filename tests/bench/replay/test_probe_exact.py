"""The estimator probe where every expectation is a finite sum: gradients, estimates, intervals, and what they tell."""

from collections.abc import Sequence

import numpy as np
import pytest
import tabular
import torch

from vcpo_bench.bench.replay.probe import ProbePoint, probe_point
from vcpo_bench.bench.replay.probe import statistics as probing
from vcpo_bench.bench.replay.probe.command import preconditioner
from vcpo_bench.bench.replay.probe.statistics import Products, estimate, quantities, resampling
from vcpo_bench.bench.replay.probe.updates import Estimators
from vcpo_bench.bench.training.learner_step import GRAD_CLIP
from vcpo_bench.methods import Method, parse_method

THETA, MU = tabular.logits(0, 0.7), tabular.logits(0, 0.7) + tabular.logits(1, 0.8)
METHODS = ["tis", "vcpo(baseline=group)", "vcpo(ess=off)", "vcpo", "clip", "reinforce+rloo", "reinforce+raw"]
DIAGONAL = np.random.default_rng(5).uniform(0.2, 30.0, THETA.size)


def estimators(methods: Sequence[Method]) -> Estimators:
    return Estimators(tabular.Table(THETA), methods)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
def test_updates_are_those_written_by_hand_on_every_batch(method: str) -> None:
    batches = [tabular.trajectories(i, MU, 0) for i in range(len(tabular.BATCHES))]
    (found,) = estimators([parse_method(method)]).updates(batches, 4)
    ours = found.gradients.double().numpy() * found.scales[:, None]
    np.testing.assert_allclose(ours, tabular.updates_by_hand(method, THETA, MU), rtol=1e-4, atol=2e-6)


def test_leave_one_out_on_fresh_data_is_the_true_gradient_on_average_and_on_stale_data_it_is_not() -> None:
    truth = tabular.true_gradient(THETA)
    fresh = tabular.batch_probabilities(THETA) @ tabular.updates_by_hand("reinforce+rloo", THETA, THETA)
    stale = tabular.batch_probabilities(MU) @ tabular.updates_by_hand("reinforce+rloo", THETA, MU)
    np.testing.assert_allclose(fresh, truth, atol=1e-12)
    assert np.abs(stale - truth).max() > 0.01


def draw(random: np.random.Generator, probability: np.ndarray, count: int) -> np.ndarray:
    return random.choice(len(probability), size=count, p=probability)


def replicas(method: str, repeats: int, n: int, fresh: int) -> dict[str, np.ndarray]:
    """[repeats, 3] value and interval of every quantity, each from data of its own."""
    random = np.random.default_rng(11)
    ours, theirs = (tabular.updates_by_hand(m, THETA, mu) for m, mu in ((method, MU), ("reinforce+rloo", THETA)))
    own, cross, gram = ours @ ours.T, ours @ theirs.T, theirs @ theirs.T
    weights, truth = resampling(n, 2), resampling(fresh, 0)
    rows: dict[str, list] = {}
    for _ in range(repeats):
        i = draw(random, tabular.batch_probabilities(MU), n)
        j = draw(random, tabular.batch_probabilities(THETA), fresh)
        data = Products(own[np.ix_(i, i)], cross[np.ix_(i, j)], gram[np.ix_(j, j)])
        for name, values in quantities(data, weights, truth).items():
            rows.setdefault(name, []).append(estimate(values))
    return {name: np.array(values) for name, values in rows.items()}


@pytest.mark.parametrize("method", ["tis", "vcpo", "clip"])
def test_intervals_cover_the_exact_value_as_often_as_they_say_and_are_no_wider_than_need_be(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "RESAMPLES", 300)
    repeats = 200
    truth = tabular.true_gradient(THETA)
    wanted = tabular.exact(tabular.updates_by_hand(method, THETA, MU), tabular.batch_probabilities(MU), truth)
    found = replicas(method, repeats, n=64, fresh=128)
    assert found.keys() == wanted.keys()
    for name, rows in found.items():
        value, low, high = rows.T
        covered = float(np.mean((low <= wanted[name]) & (wanted[name] <= high)))
        assert 0.88 <= covered <= 0.995, f"{name}: {covered:.0%} of the intervals hold {wanted[name]:.4g}"
        assert np.mean(high - low) < 1.6 * 3.92 * value.std(), f"{name}: far wider than the estimates scatter"
    for name in ("signal_sq", "variance"):  # unbiased: no batch's noise meets itself
        value = found[name][:, 0]
        assert abs(value.mean() - wanted[name]) < 3 * value.std() / repeats**0.5, name


def point(n: int, fresh: int, seed: int) -> ProbePoint:
    random = np.random.default_rng(seed)

    def batches(table: np.ndarray, count: int, version: int) -> list:
        drawn = draw(random, tabular.batch_probabilities(table), count)
        return [tabular.trajectories(int(i), table, version) for i in drawn]

    diagonal = torch.from_numpy(DIAGONAL).float()
    away = torch.from_numpy(THETA - MU).flatten().float()
    return ProbePoint(
        4, 3, estimators, batches(MU, n, 1), batches(THETA, fresh, 4), batches(THETA, n, 4), diagonal, away
    )


@pytest.mark.slow
def test_the_whole_probe_finds_the_exact_values() -> None:
    rows = list(probe_point(point(300, 600, 3), [parse_method(m) for m in METHODS]))
    found = {(r["method"], r["lag"], r["preconditioned"], r["quantity"]): r for r in rows}
    truth = tabular.true_gradient(THETA)
    inside, narrow, most_clipped = [], [], 1.0
    for method, lag, table in [(m, 3, MU) for m in METHODS] + [("reinforce", 0, THETA)]:
        probability = tabular.batch_probabilities(table)
        unscaled = {"vcpo": "vcpo(ess=off)", "vcpo(baseline=group)": "tis"}.get(method, method)
        by_hand, plain = (tabular.updates_by_hand(m, THETA, table) for m in (method, unscaled))
        clipping = GRAD_CLIP / np.maximum(np.linalg.norm(plain, axis=1), GRAD_CLIP)
        most_clipped = min(most_clipped, clipping.min())
        for pre, updates, aim in (
            (False, by_hand, truth),
            (True, by_hand * clipping[:, None] * DIAGONAL, truth * DIAGONAL),
        ):
            exact = tabular.exact(updates, probability, aim)
            if lag:
                mean, away = probability @ updates, (THETA - MU).flatten()
                exact["cosine_back"] = float(mean @ away / np.linalg.norm(mean) / np.linalg.norm(away))
            for name, value in exact.items():
                row = found[method, lag, pre, name]
                inside.append(row["low"] <= value <= row["high"])
                narrow.append(row["high"] - row["low"] < 0.5 * max(abs(value), 0.3))
    away = (THETA - MU).flatten()
    exact = truth @ away / np.linalg.norm(truth) / np.linalg.norm(away)
    row = found["truth", 0, False, "cosine_back"]
    assert row["low"] <= exact <= row["high"] < row["low"] + 0.6
    assert most_clipped < 0.95, "nothing was clipped, so clipping is not tested"
    assert len(inside) == (7 * 9 + 8) * 2
    assert np.mean(inside) > 0.9
    assert np.mean(narrow) > 0.7
    for name, value in scale_facts("vcpo(baseline=group)", "tis").items():
        row = found["vcpo(baseline=group)", 3, False, name]
        assert row["low"] <= value <= row["high"], (name, value, row)
    assert found["tis", 3, False, "snr_ratio"]["value"] == 1.0
    ratio = found["vcpo", 3, False, "snr"]["value"] / found["tis", 3, False, "snr"]["value"]
    assert found["vcpo", 3, False, "snr_ratio"]["value"] == pytest.approx(ratio)
    assert found["vcpo(ess=off)", 3, False, "step_scale"]["value"] == 1.0
    assert found["vcpo(ess=off)", 3, False, "scale_norm_correlation"]["value"] is None
    assert 0.5 < found["vcpo", 3, False, "step_scale"]["value"] < 1.0


def scale_facts(method: str, unscaled: str) -> dict[str, float]:
    """Mean step scale, and its correlation with the size of the gradient, summed over all batches."""
    norms, scaled = (np.linalg.norm(tabular.updates_by_hand(m, THETA, MU), axis=1) for m in (unscaled, method))
    p = tabular.batch_probabilities(MU)
    scales = np.where(norms > 0, scaled / np.where(norms > 0, norms, 1.0), 1.0)  # equal responses: equal weights
    one, two = scales - p @ scales, norms - p @ norms
    return {
        "step_scale": float(p @ scales),
        "scale_norm_correlation": float(p @ (one * two) / np.sqrt((p @ one**2) * (p @ two**2))),
    }


@pytest.mark.slow
def test_without_lag_reinforce_is_unbiased_and_with_it_the_probe_sees_the_bias() -> None:
    at = point(600, 600, 7)
    methods = [parse_method("reinforce+rloo")]
    on_policy = ProbePoint(at.step, 0, at.estimators, at.control, at.fresh, at.control, None)
    plain, stale = ({(r["method"], r["quantity"]): r for r in probe_point(c, methods)} for c in (on_policy, at))
    assert plain["reinforce+rloo", "bias_sq"]["low"] <= 0 <= plain["reinforce+rloo", "bias_sq"]["high"] < 0.1
    assert plain["reinforce+rloo", "gain"]["low"] < 1 < plain["reinforce+rloo", "gain"]["high"] < 1.2
    assert stale["reinforce+rloo", "bias_sq"]["low"] > 0.02
    assert not any(r["preconditioned"] for r in plain.values())


def test_a_scale_that_is_constant_changes_no_ratio_and_one_that_goes_with_the_batch_does() -> None:
    updates = tabular.updates_by_hand("tis", THETA, MU)
    truth, probability = tabular.true_gradient(THETA), tabular.batch_probabilities(MU)
    plain, halved = (tabular.exact(updates * factor, probability, truth) for factor in (1.0, 0.5))
    assert halved["snr"] == pytest.approx(plain["snr"])
    assert halved["gain"] == pytest.approx(plain["gain"] / 2)
    shrunk = updates / (1 + 5 * np.linalg.norm(updates, axis=1, keepdims=True))
    assert tabular.exact(shrunk, probability, truth)["snr"] > 1.02 * plain["snr"]


def test_the_preconditioner_is_the_one_adamw_divides_by() -> None:
    parameters = [torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(1))]
    optimizer = torch.optim.AdamW(parameters, lr=0.1, weight_decay=0.0)
    assert preconditioner(optimizer) is None
    history = np.random.default_rng(0).normal(size=(5, 3))
    moment = np.zeros(3)
    for gradient in history:
        parameters[0].grad, parameters[1].grad = torch.tensor(gradient[:2]).float(), torch.tensor(gradient[2:]).float()
        optimizer.step()
        moment = 0.999 * moment + 0.001 * gradient**2
    found = preconditioner(optimizer)
    assert found is not None
    np.testing.assert_allclose(found.numpy(), 1 / (np.sqrt(moment / (1 - 0.999**5)) + 1e-8), rtol=1e-5)
    other = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    other.step()
    assert preconditioner(other) is None
