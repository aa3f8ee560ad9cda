"""Optimizer steps of whole prompts, and the rows of verl's store."""

import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from vcpo_bench.adapters.verl.lag import read_lag
from vcpo_bench.adapters.verl.mini_batches import join, places_of_whole_prompts, select
from vcpo_bench.adapters.verl.names import LAG_SHARE
from vcpo_bench.adapters.verl.rows import group_numbers, nested_like, padded
from vcpo_bench.adapters.verl.trainer import _reduced
from vcpo_bench.errors import UsageError


@dataclass
class Meta:
    keys: list[str]
    tags: list[dict[str, Any]]
    partition_id: str = "train"
    extra_info: dict[str, Any] = field(default_factory=dict)


def test_prompts_stay_whole() -> None:
    keys = ["a_0_0", "b_0_0", "a_1_0", "c_0_0", "b_1_0", "c_1_0", "c_2_0", "d_0_0"]
    steps = places_of_whole_prompts(keys, 4)
    assert steps == [[0, 2, 1, 4], [3, 5, 6, 7]]
    batch = Meta(keys, [{"place": place} for place in range(8)])
    joined = join([select(batch, places) for places in steps])
    assert [tag["place"] for tag in joined.tags] == [0, 2, 1, 4, 3, 5, 6, 7]
    assert joined.keys == [keys[tag["place"]] for tag in joined.tags]


def test_a_prompt_larger_than_a_mini_batch_is_refused() -> None:
    with pytest.raises(UsageError, match="prompt a has 3 rows, more than the 2 of a mini-batch"):
        places_of_whole_prompts(["a_0_0", "a_1_0", "a_2_0"], 2)


def test_groups_are_numbered_in_order_and_rows_keep_their_lengths() -> None:
    assert group_numbers(["b_0_0", "a_0_0", "b_1_0"]).tolist() == [0, 1, 0]
    mask = torch.nested.as_nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    nested = nested_like(torch.arange(8.0).view(2, 4), mask)
    assert [row.tolist() for row in nested.unbind()] == [[0.0, 1.0], [4.0, 5.0, 6.0]]
    assert padded(nested).tolist() == [[0.0, 1.0, 0.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize("given", [None, {}, {"lag": -1}, {"lag": "fifo(2)"}, {"lag": True}])
def test_a_lag_must_be_a_number_of_steps(given: Any) -> None:
    with pytest.raises(UsageError, match=r"set \+trainer.v1.sampler.sampler_kwargs.lag=8"):
        read_lag(given)
    assert read_lag({"lag": 3}) == 3


def test_shares_of_lags_are_of_all_optimizer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two updates on one rollout: half of what a step trained on had lag 0, half lag 1."""
    averaging = SimpleNamespace(reduce_metrics=lambda found: {name: np.mean(each) for name, each in found.items()})
    monkeypatch.setitem(sys.modules, "verl.utils.metric", averaging)
    found = _reduced([{"x": 1.0, f"{LAG_SHARE}0": 1.0}, {"x": 3.0, f"{LAG_SHARE}1": 1.0, "once": 5.0}])
    assert found == {"x": 2.0, f"{LAG_SHARE}0": 0.5, f"{LAG_SHARE}1": 0.5, "once": 5.0}
