"""Rows in any order, of several micro-batches and ranks, become the coefficients that the method gives the whole."""

from typing import Any

import pytest
import torch
import torch.multiprocessing as mp
from rows_of_ranks import WIDTH, decide_on_rank, make_rows, take

from vcpo_bench.adapters.coefficients import Coefficients, Decision, StepRows, gather, join
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Batch, method_names, parse_method


def plain_batch(rows: StepRows, width: int) -> Batch:
    given = rows.padded(width).tensors()
    given["version"] = given["version"].unsqueeze(-1).expand(len(rows), width)
    return Batch.from_rows(**given, now=5)


ELSEWHERE = {"parameter_distance", "update_norm", "vocabulary_logp"}  # which no row carries
MEASURED = [name for name in method_names() if not parse_method(name).needs & ELSEWHERE]


@pytest.mark.parametrize("name", [*MEASURED, "clip+seq-mean-token-sum-norm", "tis+delta-ln"])
def test_the_order_of_the_rows_and_their_cut_do_not_matter(name: str) -> None:
    rows, method = make_rows(), parse_method(name)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    pieces = [take(rows, part) for part in order.split(3)]
    short = [take(piece, torch.arange(3)) for piece in pieces]
    decision = Coefficients(method, WIDTH).decide(join(short, 7), now=5)
    update = method(batch := plain_batch(rows, WIDTH))
    wanted = batch.to_rows(update.coefficients)[:, :7][order]
    if name != "clip-cov":  # draws a token by its place
        torch.testing.assert_close(decision.coefficients, wanted, rtol=1e-5, atol=1e-7)
    assert decision.step_scale == pytest.approx(float(update.step_scale), rel=1e-6)
    assert decision.coefficients[~rows.mask[order]].abs().max() == 0


def test_the_width_is_the_longest_response_allowed_not_the_longest_of_the_step() -> None:
    method = parse_method("clip+seq-mean-token-sum-norm")
    rows = make_rows()
    narrow, wide = (Coefficients(method, width).decide(rows, now=5).coefficients for width in (7, 14))
    torch.testing.assert_close(narrow, 2 * wide)
    with pytest.raises(UsageError, match="has 7 tokens, more than the longest allowed, 6"):
        Coefficients(method, 6).decide(rows, now=5)


def test_padding_beyond_the_width_is_no_response() -> None:
    method, rows = parse_method("vcpo+seq-mean-token-sum-norm"), make_rows()
    padded = Coefficients(method, 7).decide(rows.padded(16), now=5).coefficients
    assert padded.shape == (12, 16)
    assert torch.equal(padded[:, :7], Coefficients(method, 7).decide(rows, now=5).coefficients)


def test_rows_that_could_not_be_judged_count_nowhere() -> None:
    rows = make_rows()
    rows.reward[[1, 6]] = torch.nan
    judged = torch.tensor([row for row in range(12) if row not in (1, 6)])
    method = parse_method("vcpo")
    decision = Coefficients(method, WIDTH).decide(rows, now=5)
    alone = Coefficients(method, WIDTH).decide(take(rows, judged), now=5)
    torch.testing.assert_close(decision.coefficients[judged], alone.coefficients)
    assert decision.coefficients[[1, 6]].abs().max() == 0
    assert decision.step_scale == alone.step_scale
    rows.reward[:] = torch.nan
    assert Coefficients(method, WIDTH).decide(rows, now=5).skipped == "reward"


def test_evidence_that_is_not_finite_changes_nothing() -> None:
    rows = make_rows()
    source = Coefficients(parse_method("clip+ess(base=measured)"), WIDTH)
    source.decide(rows, now=5)
    before = source.state_dict()["state"]
    rows.mask[3, 2], rows.logp[3, 2] = True, torch.nan
    decision = source.decide(rows, now=6)
    assert (decision.skipped, decision.step_scale) == ("logp", 1.0)
    assert decision.coefficients.abs().max() == 0
    assert source.state_dict()["state"] == before


def test_half_precision_is_read_as_float32() -> None:
    rows = make_rows()
    half = StepRows(**{n: v.bfloat16() if v.is_floating_point() else v for n, v in rows.tensors().items()})
    assert Coefficients(parse_method("vespo"), WIDTH).decide(half, now=5).coefficients.dtype == torch.float32


def test_entropy_bonus_comes_with_the_decision() -> None:
    rows = make_rows()
    decision = Coefficients(parse_method("clip+entropy(beta=0.5)"), WIDTH).decide(rows, now=5)
    assert decision.entropy_coefficients is not None
    assert bool((decision.entropy_coefficients[rows.mask] > 0).all())


def test_log_weights_are_those_of_whole_responses() -> None:
    rows = make_rows()
    rows.behavior_logp[~rows.mask] = torch.nan
    log_ratio = torch.where(rows.mask, rows.logp - rows.behavior_logp, torch.zeros(()))
    torch.testing.assert_close(rows.log_weights(), log_ratio.sum(1))


def test_state_goes_through_a_checkpoint() -> None:
    method = parse_method("clip+ess(base=measured)")
    first, second = Coefficients(method, WIDTH), Coefficients(method, WIDTH)
    rows = make_rows()
    rows.version[:] = 5
    first.decide(rows, now=5)
    second.load_state_dict(first.state_dict())
    assert same(first.decide(rows, now=9), second.decide(rows, now=9))
    assert float(first.state["ess.base"]) > 0
    with pytest.raises(UsageError, match=r"was written with clip.*this run uses vespo"):
        Coefficients(parse_method("vespo"), WIDTH).load_state_dict(first.state_dict())


def same(one: Decision, other: Decision) -> bool:
    return torch.equal(one.coefficients, other.coefficients) and one.step_scale == other.step_scale


def test_ranks_decide_the_same_as_one_process(tmp_path: Any) -> None:
    mp.spawn(decide_on_rank, (2, str(tmp_path)), nprocs=2)  # type: ignore[attr-defined]
    alone = Coefficients(parse_method("vcpo"), WIDTH).decide(make_rows(), now=5)
    parts = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    assert torch.equal(torch.cat([part for part, _ in parts]), alone.coefficients)
    assert [scale for _, scale in parts] == [alone.step_scale] * 2


def test_without_a_process_group_the_rows_come_back() -> None:
    rows = make_rows()
    everyone, mine = gather(rows)
    assert everyone is rows
    assert mine == slice(0, 12)
