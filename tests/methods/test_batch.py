"""Batches refuse tensors that do not fit, and rows come back in the order they went in."""

from collections.abc import Callable
from dataclasses import replace
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

Make = Callable[..., Batch]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mask": torch.ones(3, 4, 5, dtype=torch.bool)}, "mask has shape"),
        ({"mask": torch.ones(3, 4, 6)}, "mask is torch.float32"),
        ({"valid": torch.ones(3, 5, dtype=torch.bool)}, "valid has shape"),
        ({"reward": torch.zeros(3, 4, 6)}, "reward has shape"),
        ({"version": torch.zeros(3, 4, 6)}, "version is torch.float32"),
        ({"logp": torch.zeros(3, 4, 6, dtype=torch.float16)}, "float32 or float64"),
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
        now=4,
    )
    assert batch.logp.shape == (2, 3, 2)
    assert batch.valid.tolist() == [[True, True, False], [True, True, True]]
    assert batch.reward[1].tolist() == [0.0, 2.0, 3.0]
    assert torch.equal(batch.to_rows(batch.logp), logp)
    assert torch.equal(batch.to_rows(batch.reward), torch.arange(5.0))
    assert (batch.to_rows(batch.version) == 4).all()


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
