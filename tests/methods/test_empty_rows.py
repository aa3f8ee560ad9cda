"""A valid row without a token in play enters its group as the parameter `empty` says; void turns are left out."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from vcpo_bench.methods import METHODS, Batch, parse_method
from vcpo_bench.methods.core.errors import BatchError, MissingEvidence
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.parts.opob import Opob

Make = Callable[..., Batch]
BASELINES = sorted(name for name, kind in METHODS.kinds.items() if issubclass(kind, Baseline))


@pytest.fixture
def batch(make_batch: Make) -> Batch:
    """Two groups of four; the second row of the first has lost its tokens, and has a reward of 0.75."""
    batch = make_batch((2, 4, 5), seed=2)
    batch.mask[...] = True
    batch.mask[0, 1] = False
    batch.mask[1, :2, 3:] = False
    reward = torch.tensor([[1.0, 0.75, 0.0, 0.25], [1.0, 0.0, 0.5, 0.5]], dtype=torch.float64)
    return replace(batch, reward=reward)


def advantages(text: str, batch: Batch) -> torch.Tensor:
    """Of the rows that have tokens."""
    found = parse_method(f"reinforce+{text}+token-sum")(batch).coefficients
    return found[batch.mask.any(-1)]


@pytest.mark.parametrize("name", BASELINES)
def test_the_three_rules_of_every_baseline(name: str, batch: Batch) -> None:
    """`zero` is a reward of 0, `skipped` is as if the row had never been sampled, `counted` is the default."""
    silent = replace(batch, reward=torch.where(batch.mask.any(-1), batch.reward, 0.0))
    gone = replace(batch, valid=batch.mask.any(-1))
    assert torch.equal(advantages(f"{name}(empty=zero)", batch), advantages(name, silent))
    assert torch.equal(advantages(f"{name}(empty=skipped)", batch), advantages(name, gone))
    assert parse_method(f"reinforce+{name}(empty=counted)").canonical == parse_method(f"reinforce+{name}").canonical


def test_what_verl_trl_and_nemo_make_of_it(batch: Batch) -> None:
    """Loops as these frameworks have them, over the first group: rewards of masked tokens, of rows, of rows in use."""
    reward = batch.reward[0]
    for rule, scores in (
        ("zero", [1.0, 0.0, 0.0, 0.25]),
        ("counted", reward.tolist()),
        ("skipped", [1.0, 0.0, 0.25]),
    ):
        mean = sum(scores) / len(scores)
        deviation = (sum((score - mean) ** 2 for score in scores) / (len(scores) - 1)) ** 0.5
        expected = [(float(reward[row]) - mean) / (deviation + 1e-6) for row in (0, 2, 3)]
        text = f"reinforce+grpo(empty={rule},eps=1e-6,std=sample)+token-sum"
        found = parse_method(text)(batch).coefficients[0, [0, 2, 3], 0]
        assert found.tolist() == pytest.approx(expected, rel=1e-12)  # a handful of float64 operations


def test_the_rule_ends_with_the_baseline(batch: Batch) -> None:
    """Denominators, sample sizes and TOPR's rewards see the row as before."""
    for text in ("reinforce+{}+seq-mean-token-mean(empty=counted)", "topr+{}+ess", "vcpo+{}"):
        plain = parse_method(text.format("raw"))(batch)
        ruled = parse_method(text.format("raw(empty=skipped)"))(batch)
        assert torch.equal(plain.coefficients, ruled.coefficients)
        assert torch.equal(plain.metrics["ess_ratio"], ruled.metrics["ess_ratio"])


def test_the_released_baseline_adds_1e8_to_its_weights(make_rows: Make) -> None:
    """Weights of e^-10 each: their squares sum to about 4e-9, and the baseline is mostly drowned."""
    batch = make_rows([[-10.0], [-10.0]], [0.0, 0.0], reward=torch.tensor([[1.0, 0.0]], dtype=torch.float64))
    weight = torch.exp(torch.tensor([-40.0, -40.0], dtype=torch.float64))  # min(w, cap)^2 w^2
    expected = float(weight[0] / (weight.sum() + 1e-8))
    part = parse_method("vcpo(variant=released)").parts.baseline
    assert part == Opob(weight="released", eps=1e-8, empty="zero")
    assert isinstance(part, Opob)
    ev = parse_method("reinforce").evidence(batch)
    assert float(part.baseline(ev)) == pytest.approx(expected, rel=1e-12)  # two exponentials in float64
    assert float(Opob(weight="released").baseline(ev)) == pytest.approx(0.5)
    raw = Opob(weight="raw", eps=1e-8).baseline(ev)
    assert float(raw) == pytest.approx(float(torch.exp(torch.tensor(-20.0).double())) / (2 * 2.061153622e-9 + 1e-8))


def test_without_any_weight_the_released_baseline_is_zero(make_rows: Make) -> None:
    norms = torch.zeros(1, 2, dtype=torch.float64)
    reward = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    ev = parse_method("reinforce").evidence(make_rows([[0.0]] * 2, [0.0] * 2, reward=reward, score_norm_sq=norms))
    assert float(Opob(eps=1e-8).baseline(ev)) == 0.0
    assert float(Opob().baseline(ev)) == 0.5


def test_only_the_released_baseline_has_new_numbers() -> None:
    versions = [parse_method(text).version for text in ("vcpo", "vcpo(variant=released)", "vcpo:paper")]
    assert versions == [1, 2, 1]
    assert parse_method("vcpo(baseline=group,variant=released)").version == 1


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
    with pytest.raises(BatchError, match=r"void_turn is torch\.float64; expected a tensor of type bool"):
        make_batch(void_turn=torch.zeros(3, 4, dtype=torch.float64))
