"""`share_clipped` counts the tokens whose weight a cap holds, with those whose gradient the surrogate removed."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from vcpo_bench.methods import Batch, parse_method

Make = Callable[..., Batch]
FAR, NEAR = math.log(30.0), math.log(1.1)
"""Log-ratios beyond every default cap, and below the caps above 1."""


def share(text: str, batch: Batch) -> float:
    return float(parse_method(text)(batch).metrics["share_clipped"])


@pytest.fixture
def batch(make_rows: Make) -> Batch:
    """Three rows of 2, 1 and 1 tokens: the first is far off the sampler, 2 of 4 tokens."""
    batch = make_rows([[FAR, FAR], [NEAR, 0.0], [NEAR, 0.0]], [1.0, 1.0, -1.0])
    batch.mask[0, 1:, 1] = False
    return batch


@pytest.mark.parametrize(
    "text",
    [
        "tis",
        "token-tis",
        "geo-tis",
        "cispo",
        "aipo",
        "snis",
        "tis(level=segment)",
        "vcpo(baseline=group)",
        "vcpo",
        "topr(cap=2)",
        "topr(cap=2,level=token)",
        "rec(mask=none,use=truncated)",
        "dppo-tv(high=1,low=1)",
        "vtrace(pg=2)",
        "reinforce+tis",
        "reinforce+token-tis",
    ],
)
def test_a_capped_weight_counts(text: str, batch: Batch) -> None:
    assert share(text, batch) == 0.5


@pytest.mark.parametrize("text", ["tis", "token-tis", "cispo", "vcpo", "topr(cap=2)", "dppo-tv(high=1,low=1)"])
def test_below_the_cap_nothing_is_clipped(text: str, make_rows: Make) -> None:
    assert share(text, make_rows([[NEAR], [0.0]], [1.0, -1.0])) == 0.0


def test_a_weight_at_its_cap_is_not_changed_by_it(make_rows: Make) -> None:
    assert share("tis(cap=1)", make_rows([[0.0], [1e-9]], [1.0, 1.0])) == 0.5


def test_a_floor_counts_too(make_rows: Make) -> None:
    rows = make_rows([[-1.0], [1.0], [0.0], [0.0]], [1.0] * 4)
    assert share("token-tis(cap=2,low=0.5)", rows) == 0.5
    assert share("rec(low2=0.5,mask=none,use=truncated)", make_rows([[-1.0], [0.0]], [1.0] * 2)) == 0.5


def test_caps_of_proximal_ratios_count(batch: Batch) -> None:
    shifted = replace(batch, proximal_logp=batch.behavior_logp + FAR)
    assert share("decoupled(cap=2,high=40,low=1)", shifted) == 1.0
    assert share("decoupled(high=40,low=1)", shifted) == 0.0
    assert share("token-tis(of=proximal)", shifted) == 1.0


def test_the_ceiling_of_aspo_counts_for_either_sign(make_rows: Make) -> None:
    """1/r for A > 0 and r for A < 0 are held at 3."""
    batch = make_rows([[-2.0], [-0.1], [2.0], [0.1]], [1.0, 1.0, -1.0, -1.0])
    assert share("aspo", batch) == 0.5


def test_p3o_counts_the_tokens_above_the_ess(make_rows: Make) -> None:
    batch = make_rows([[0.0], [0.0], [0.0], [-9.0]], [1.0] * 4)  # the ESS is 3/4
    assert share("p3o", batch) == 0.75


def test_a_token_that_is_clipped_and_capped_counts_once(make_rows: Make) -> None:
    batch = make_rows([[FAR], [0.0]], [1.0, 1.0])
    assert share("clip", batch) == share("clip+token-tis", batch) == share("clip+tis", batch) == 0.5
    assert share("gspo+tis", batch) == 0.5
    down = make_rows([[FAR], [-FAR], [0.0], [0.0]], [1.0, -1.0, 1.0, 1.0])
    assert share("clip+token-tis(low=0.5)", down) == 0.5
    assert share("clip+token-tis", down) == 0.5


def test_a_mask_that_drops_rows_keeps_them_out_of_the_count(batch: Batch) -> None:
    assert share("tis+band(low=0.5,high=2,rejected=dropped)", batch) == 0.0


def test_counting_changes_no_coefficient(batch: Batch) -> None:
    weight = torch.tensor([8.0, 1.1, 1.1], dtype=torch.float64)
    found = parse_method("tis+token-sum")(batch).coefficients[0, :, 0]
    assert torch.allclose(found, weight * torch.tensor([1.0, 1.0, -1.0]), rtol=1e-15)  # one exp and one log
