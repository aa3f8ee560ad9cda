"""Shortcuts change no bit: batches whose rows are all in play, values that are infinite; and no batch is changed."""

from collections.abc import Callable
from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from vcpo_bench.methods import Batch, EvidenceView, parse_method
from vcpo_bench.methods.core.ess import ess_ratio, ess_ratio_of_logs
from vcpo_bench.methods.core.masking import gate, within

Make = Callable[..., Batch]
BY_ROW = [
    "aipo", "clip", "clip+entropy", "clip+icepop", "clip(nonfinite=zero)", "dual-clip", "drpo", "gbpo", "icepop",
    "icepop+veto", "negatives-cap", "rec", "reinforce", "rollout-is", "spo", "tis", "token-tis",
    "token-tis(low=0.9,cap=1.1)+kl(kind=k2)", "two-sided",
]  # fmt: skip
"""What one row gets depends on the rewards of its group and nothing else, up to N."""


@pytest.mark.parametrize("text", BY_ROW)
def test_the_batch_is_left_alone(text: str, make_batch: Make) -> None:
    batch = make_batch(update_norm=None)
    before = {each.name: getattr(batch, each.name) for each in fields(batch)}
    copies = {name: value.clone() for name, value in before.items() if isinstance(value, Tensor)}
    parse_method(text)(batch)
    assert all(torch.equal(getattr(batch, name), value) for name, value in copies.items())


@pytest.mark.parametrize("text", [*BY_ROW, "clip+rloo", "clip+mc-grpo", "clip+grpo(std=sample)", "zero-variance"])
@pytest.mark.parametrize("empty", ["counted", "zero", "skipped"])
def test_a_group_of_padding_changes_no_bit(text: str, empty: str, make_batch: Make) -> None:
    """Without padding every row is in play, and nothing is selected by row."""
    batch = make_batch(shape=(4, 4, 6), spread=1.0)
    empty_row = batch.mask.clone()
    empty_row[1, 2] = False
    batch = replace(batch, mask=empty_row, update_norm=None)
    padded = {
        each.name: torch.cat([value, value[:1]])
        for each in fields(batch)
        if isinstance(value := getattr(batch, each.name), Tensor)
    }
    valid = padded["valid"].clone()
    valid[-1] = False
    method = parse_method(text)
    method = replace(method, extras=(*method.extras, *baseline_with(method.parts.baseline.name, empty, method.extras)))
    whole, other = method(batch), method(replace(batch, **padded | {"valid": valid}))
    assert torch.equal(other.coefficients[:-1], whole.coefficients)
    assert not other.coefficients[-1].any()


def baseline_with(name: str, empty: str, extras: tuple[object, ...]) -> tuple[object, ...]:
    """The baseline with this rule for rows without tokens, unless the expression names its own."""
    if any(getattr(part, "slot", "") == "baseline" for part in extras):
        return ()
    return parse_method(f"reinforce+{name}(empty={empty})").extras


def test_an_infinite_value_is_gated_to_zero() -> None:
    value = torch.tensor([torch.inf, -torch.inf, torch.nan, -3.0, 2.0, torch.inf])
    keep = torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
    wanted = torch.tensor([0.0, 0.0, 0.0, 0.0, 2.0, torch.inf])
    assert torch.equal(gate(value, keep), wanted)
    assert torch.equal(gate(value, keep.bool()), wanted)
    assert not torch.signbit(gate(value, keep)).any()


def test_numbers_and_tensors_bound_alike() -> None:
    bound = 1.2
    value = torch.tensor([1.2, 1.1999999, 1.2000002, 0.8, 0.79999995, -torch.inf, torch.inf])
    by_number = within(value, 0.8, bound)
    assert torch.equal(by_number, within(value, value.new_tensor(0.8), value.new_tensor(bound)))
    assert by_number.tolist() == [1, 1, 0, 1, 0, 0, 0]


def test_ess_of_all_rows_is_that_of_a_full_mask() -> None:
    logs = torch.tensor([[0.0, -3.0, 7.0], [1.0, -torch.inf, 2.0]])
    every = torch.ones_like(logs, dtype=torch.bool)
    assert torch.equal(ess_ratio_of_logs(logs, None), ess_ratio_of_logs(logs, every))
    assert torch.equal(ess_ratio(logs.exp(), None), ess_ratio(logs.exp(), every))
    assert float(ess_ratio_of_logs(torch.full((2, 3), -torch.inf), None)) == 0
    assert float(ess_ratio_of_logs(torch.tensor([[torch.nan, 0.0]]), None)) == 0


def test_group_sizes_know_what_a_baseline_skips(make_batch: Make) -> None:
    batch = make_batch(shape=(1, 3, 2), mask=torch.tensor([[[True, True], [False, False], [True, False]]]))
    ev = EvidenceView(batch)
    assert ev.rows.every
    assert ev.rows.group_sizes.tolist() == [[3]]
    skipped = ev.with_empty_rows("skipped")
    assert skipped.rows.group_sizes.tolist() == [[2]]
    assert not skipped.rows.every
    assert ev.rows.group_sizes.tolist() == [[3]]
    ev.admit(torch.tensor([[True, False, False]]))
    assert ev.rows.group_sizes.tolist() == [[1]]
