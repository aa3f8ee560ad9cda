"""Episodes with a void turn left out of the loss."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from vcpo_bench.methods import Batch, parse_method
from vcpo_bench.methods.core.errors import BatchError, MissingEvidence


@pytest.mark.parametrize("method", ["clip", "vespo", "reinforce+grpo+token-mean", "gspo"])
def test_they_count_in_the_baseline_and_nowhere_else_in_the_loss(make_batch: Callable[..., Batch], method: str) -> None:
    batch = make_batch()
    void = batch.void_turn
    assert void is not None
    assert 0 < int(void.sum()) < void.numel() / 2
    found = parse_method(f"{method}+void-turns")(batch).coefficients
    without = replace(batch, mask=batch.mask & ~void.unsqueeze(-1), void_turn=None)  # such a row counts with its reward
    torch.testing.assert_close(found, parse_method(method)(without).coefficients)
    assert not found[void].any()
    assert not torch.allclose(found, parse_method(method)(batch).coefficients)


def test_counted_leaves_them_in_the_denominators(make_batch: Callable[..., Batch]) -> None:
    batch = make_batch()
    plain = parse_method("clip")(batch).coefficients
    found = parse_method("clip+void-turns(rejected=counted)")(batch).coefficients
    assert batch.void_turn is not None
    torch.testing.assert_close(found, torch.where(batch.void_turn.unsqueeze(-1), 0.0, plain))


def test_nothing_changes_without_one(make_batch: Callable[..., Batch]) -> None:
    batch = make_batch(void_turn=torch.zeros(3, 4, dtype=torch.bool))
    assert torch.equal(parse_method("vespo+void-turns")(batch).coefficients, parse_method("vespo")(batch).coefficients)


def test_evidence_that_is_missing_or_no_bool_is_refused(make_batch: Callable[..., Batch]) -> None:
    with pytest.raises(MissingEvidence, match="where a task has an environment"):
        parse_method("clip+void-turns")(make_batch(void_turn=None))
    with pytest.raises(BatchError, match=r"void_turn is torch\.float64; expected a bool"):
        make_batch(void_turn=torch.zeros(3, 4, dtype=torch.float64))
