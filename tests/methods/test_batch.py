"""Batches refuse tensors that do not fit, and rows come back in the order they went in."""

import re
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
import torch

from vcpo_bench.errors import UsageError
from vcpo_bench.methods import (
    Batch,
    BatchError,
    EvidenceOrderError,
    MethodError,
    MissingEvidence,
    NonFiniteEvidence,
    parse_method,
)
from vcpo_bench.methods.core.batch import LARGEST_REWARD

Make = Callable[..., Batch]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mask": torch.ones(3, 4, 5, dtype=torch.bool)}, "mask has shape"),
        ({"mask": torch.ones(3, 4, 6)}, "mask is torch.float32"),
        ({"valid": torch.ones(3, 5, dtype=torch.bool)}, "valid has shape"),
        ({"reward": torch.zeros(3, 4, 6)}, "reward has shape"),
        ({"version": torch.zeros(3, 4, 6)}, "version is torch.float32"),
        ({"logp": torch.zeros(3, 4, 6, dtype=torch.int64)}, "float32 or float64"),
        ({"logp": torch.zeros(4, 6)}, "at least the three axes"),
        ({"score_norm_sq": torch.zeros(3)}, "score_norm_sq has shape"),
        ({"now": torch.zeros(2, dtype=torch.int64)}, "now has shape"),
    ],
)
def test_tensors_that_do_not_fit_are_named(make_batch: Make, change: dict[str, Any], message: str) -> None:
    with pytest.raises(BatchError, match=message):
        make_batch(**change)


def test_rows_go_to_their_groups_and_come_back() -> None:
    group = torch.tensor([7, 3, 7, 7, 3])
    logp = torch.arange(10.0).reshape(5, 2)
    batch = Batch.from_rows(
        logp=logp,
        behavior_logp=logp - 1,
        mask=torch.ones(5, 2),
        reward=torch.arange(5.0),
        group=group,
        entropy=logp + 2,
        version=torch.full((5, 2), 4),
        now=4,
    )
    assert batch.logp.shape == (2, 3, 2)
    assert batch.valid.tolist() == [[True, True, False], [True, True, True]]
    assert batch.reward[1].tolist() == [0.0, 2.0, 3.0]
    assert torch.equal(batch.to_rows(batch.logp), logp)
    assert torch.equal(batch.to_rows(batch.reward), torch.arange(5.0))
    assert (batch.to_rows(batch.version) == 4).all()


def six_rows(**changes: Any) -> Batch:
    """Rows of three groups in turn."""
    fields = {
        "logp": torch.full((6, 3), -1.0),
        "behavior_logp": torch.full((6, 3), -1.1),
        "mask": torch.ones(6, 3),
        "reward": torch.tensor([1.0, 0, 0, 0, 1, 1]),
        "group": torch.tensor([0, 1, 2, 0, 1, 2]),
    }
    return Batch.from_rows(**(fields | changes))


@pytest.mark.parametrize(
    "expression",
    ["a3po", "clip+max-lag", "clip+freshest", "clip+inverse-lag", "clip+inverse-sqrt-lag", "clip+ess(base=measured)"],
)
def test_a_method_that_reads_versions_refuses_rows_without(expression: str) -> None:
    method = parse_method(expression)
    with pytest.raises(MissingEvidence, match=f"^{re.escape(method.canonical)} needs version; .* pass it with now$"):
        method(six_rows(now=16))
    method(six_rows(now=16, version=torch.zeros(6, 3, dtype=torch.int64)))


def test_the_lag_of_rows_without_versions_is_not_known() -> None:
    with pytest.raises(MissingEvidence, match="the lag of a row needs version"):
        six_rows(now=16).lag()
    assert six_rows(now=16, version=torch.ones(6, 3, dtype=torch.int64)).lag().unique().tolist() == [15]
    assert parse_method("clip+ess")(six_rows(now=16)).step_scale > 0


@pytest.mark.parametrize(
    ("field", "shape", "wanted"),
    [
        ("reward", (6, 1), "[6]"),
        ("score_norm_sq", (6, 3), "[6]"),
        ("behavior_logp", (6, 4), "[6, 3]"),
        ("entropy", (6,), "[6, 3]"),
        ("version", (6,), "[6, 3]"),
        ("vocabulary_logp", (6, 3), "[6, 3, V]"),
    ],
)
def test_a_wrong_shape_is_told_as_it_was_given(field: str, shape: tuple[int, ...], wanted: str) -> None:
    said = f"{field} has shape {list(shape)}; expected {wanted}"
    with pytest.raises(BatchError, match=f"^{re.escape(said)}$"):
        six_rows(**{field: torch.zeros(shape)})


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("reward", torch.nan, "reward is not finite in row 4; skip"),
        ("reward", 1e13, "reward of row 4 is 1e+13, which"),
        ("logp", torch.nan, "logp is not finite on a valid token of row 4; skip"),
    ],
)
def test_a_bad_value_is_in_the_row_that_was_given(field: str, value: float, said: str) -> None:
    given = six_rows().to_rows(getattr(six_rows(), field)).clone()
    given[4] = value
    with pytest.raises(MethodError, match=f"^{re.escape(said)}"):
        parse_method("clip")(six_rows(**{field: given}))


def test_from_rows_names_what_is_wrong(make_batch: Make) -> None:
    rows = {"logp": torch.zeros(2, 3), "behavior_logp": torch.zeros(2, 3), "mask": torch.ones(2, 3)}
    rest = {"reward": torch.zeros(2), "group": torch.zeros(2, dtype=torch.int64)}
    with pytest.raises(BatchError, match="unknown field 'entorpy'"):
        Batch.from_rows(**rows, **rest, entorpy=torch.zeros(2, 3))
    with pytest.raises(BatchError, match="behavior_logp has 1 rows"):
        Batch.from_rows(**(rows | {"behavior_logp": torch.zeros(1, 3)}), **rest)
    with pytest.raises(BatchError, match="group"):
        Batch.from_rows(**rows, reward=torch.zeros(2), group=torch.zeros(3, dtype=torch.int64))
    with pytest.raises(BatchError, match="from_rows"):
        make_batch().to_rows(torch.zeros(3, 4))


def test_lag_is_now_minus_the_oldest_token_in_play(make_batch: Make) -> None:
    version = torch.tensor([[[1, 0], [5, 5]]])
    mask = torch.tensor([[[True, False], [False, False]]])
    batch = Batch(
        logp=torch.zeros(1, 2, 2),
        behavior_logp=torch.zeros(1, 2, 2),
        mask=mask,
        valid=torch.ones(1, 2, dtype=torch.bool),
        reward=torch.zeros(1, 2),
        version=version,
        now=6,
    )
    assert batch.lag().tolist() == [[5, 0]]


def test_a_method_names_the_evidence_it_misses(make_batch: Make) -> None:
    batch = replace(make_batch(), score_norm_sq=None, proximal_logp=None)
    with pytest.raises(MissingEvidence, match="vcpo needs score_norm_sq"):
        parse_method("vcpo")(batch)
    with pytest.raises(MissingEvidence, match="proximal_logp"):
        parse_method("clip(anchor=proximal)")(batch)
    assert parse_method("vcpo").needs == {"score_norm_sq"}
    assert parse_method("vcpo(baseline=group)").needs == frozenset()
    parse_method("vcpo(baseline=group)")(batch)


def test_float32_evidence_with_float64_rewards_gives_float32_coefficients(make_batch: Make) -> None:
    batch = make_batch()
    batch = replace(batch, logp=batch.logp.float(), behavior_logp=batch.behavior_logp.float())
    assert parse_method("clip")(batch).coefficients.dtype == torch.float32


def test_evidence_without_gradient_history_is_returned(make_batch: Make) -> None:
    batch = make_batch()
    batch = replace(batch, logp=batch.logp.requires_grad_())
    assert not parse_method("clip")(batch).coefficients.requires_grad


@pytest.mark.parametrize("kind", [BatchError, EvidenceOrderError, MissingEvidence, NonFiniteEvidence])
def test_the_command_line_answers_every_error_with_one_line(kind: type[MethodError]) -> None:
    assert issubclass(kind, MethodError)
    assert issubclass(kind, UsageError)


def test_half_precision_evidence_is_worked_on_in_float32(make_batch: Make) -> None:
    """TRL and verl may hold log-probabilities, rewards and norms in bfloat16."""
    batch = make_batch()
    floats = [each.name for each in fields(batch) if getattr(getattr(batch, each.name), "dtype", None) == torch.float64]
    for dtype in (torch.bfloat16, torch.float16):
        half = {name: getattr(batch, name).to(dtype) for name in floats}
        given, single = replace(batch, **half), replace(batch, **{name: x.float() for name, x in half.items()})
        for text in ("vcpo", "vespo+kl", "clip+otb", "stapo"):
            assert torch.equal(parse_method(text)(given).coefficients, parse_method(text)(single).coefficients)


def test_tensors_with_gradient_history_are_taken(make_batch: Make) -> None:
    batch = make_batch()
    floats = [each.name for each in fields(batch) if getattr(getattr(batch, each.name), "dtype", None) == torch.float64]
    live = replace(batch, **{name: (getattr(batch, name).clone().requires_grad_() * 1) for name in floats})
    for text in ("vcpo", "vespo+kl", "clip+otb", "psis"):
        update = parse_method(text)(live)
        assert torch.equal(update.coefficients, parse_method(text)(batch).coefficients)
        assert not update.coefficients.requires_grad
        assert not update.step_scale.requires_grad


def test_coefficients_go_back_through_bfloat16_log_probabilities() -> None:
    """The loop of the README with a model in bfloat16."""
    weight = torch.zeros(4, 3, dtype=torch.bfloat16, requires_grad=True)
    logp = weight - 1
    rows = {"mask": torch.ones(4, 3), "reward": torch.tensor([1.0, 0.0, 1.0, 0.0]), "group": torch.tensor([0, 0, 1, 1])}
    batch = Batch.from_rows(logp=logp, behavior_logp=logp.detach(), **rows)
    coefficients = batch.to_rows(parse_method("clip")(batch).coefficients)
    logp.backward(-coefficients)
    assert weight.grad is not None
    assert torch.equal(weight.grad, -coefficients.bfloat16())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": torch.full((3, 4), 1e13)}, r"reward of row \(0, 0\) is 1e\+13, which is beyond 1e\+12 in size"),
        ({"reward": torch.full((3, 4), -3e38)}, r"reward of row \(0, 0\) is -3e\+38"),
        ({"advantage": torch.full((3, 4, 6), 2e12)}, r"advantage of row \(0, 0\) is 2e\+12"),
        ({"score_norm_sq": torch.full((3, 4), -1.0)}, r"score_norm_sq of row \(0, 0\) is -1, which is no squared norm"),
    ],
)
def test_values_that_would_overflow_are_refused(make_batch: Make, change: dict[str, Any], message: str) -> None:
    batch = make_batch()
    batch.mask[0, 0] = True
    with pytest.raises(BatchError, match=message):
        parse_method("vcpo")(replace(batch, **change))


def test_the_largest_reward_is_accepted(make_batch: Make) -> None:
    batch = make_batch()
    batch = replace(batch, reward=batch.reward * LARGEST_REWARD, logp=batch.logp.float())
    for text in ("vcpo", "reinforce+raw+kl", "clip+gpg"):
        assert torch.isfinite(parse_method(text)(batch).coefficients).all()
