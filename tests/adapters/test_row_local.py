"""Methods bound to hooks that see single rows: exact up to the trainer's division, or refused with the reason."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hook_rows import B, hook_rows, poisoned, relative_error, supported, wanted_gradient
from torch import Tensor

from vcpo_bench.adapters.hook import Divisor, Hook
from vcpo_bench.adapters.hook_reasons import scales_with_advantage
from vcpo_bench.adapters.row_local import bind, loss_of
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import method_names, parse_method

TOKENS = Hook(trainer="T", divisor=Divisor.TOKENS, proximal=True)
ROWS = Hook(trainer="R", divisor=Divisor.ROWS, proximal=True)
TOLERANCE = 1e-12


def gradient(method: str, hook: Hook) -> Tensor:
    """`[B, T]` through the hook, two rows at a time, with what is masked unreadable, divided as the trainer does."""
    rows = hook_rows()
    hidden = poisoned(rows)
    logp = rows.logp.clone().requires_grad_()
    bound = bind(method, hook)
    for start in range(0, B, 2):
        here = slice(start, start + 2)
        weighed = bound.weigh(
            logp=logp[here],
            behavior_logp=hidden.behavior_logp[here],
            advantage=hidden.advantage[here],
            mask=hidden.mask[here],
            proximal_logp=hidden.proximal_logp[here],
        )
        loss_of(weighed, logp[here]).backward()
    assert logp.grad is not None
    return logp.grad / (rows.mask.sum() if hook.divisor is Divisor.TOKENS else B)


@pytest.mark.parametrize("hook", [TOKENS, ROWS], ids=["tokens", "rows"])
def test_every_supported_expression_is_exact(hook: Hook) -> None:
    expressions = supported(hook)
    assert len(expressions) > 45
    rows = hook_rows()
    for text in expressions:
        wanted = wanted_gradient(parse_method(text), rows)
        assert relative_error(gradient(text, hook), wanted) < TOLERANCE, text
        assert float(wanted.abs().max()) > 0, text


def test_the_table_of_the_issue_is_covered() -> None:
    named = {text.split("+")[0] for text in supported(TOKENS)} & set(method_names())
    assert len(named) >= 36
    assert {"tis", "clip", "vespo", "gspo", "cispo", "icepop", "dppo-kl", "rollout-is"} <= named


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("vcpo", "scales the learning rate|score_norm_sq, which the loss hook does not hand over"),
        ("clip+ess", "scales the learning rate by a number that all rows decide"),
        ("gepo", "needs all rows of a prompt together, and its loss hook sees single rows"),
        ("psis", "needs all rows of the optimizer step together"),
        ("topr", "reads the reward of each row, which does not reach"),
        ("clip+max-lag", "reads the version of each row"),
        ("stapo", "needs entropy, which the loss hook does not hand over"),
        ("clip+entropy", "term in the entropy"),
        ("gac", "changes the whole gradient"),
        ("clip+void-turns", "asks which episodes had a void turn"),
        ("dc-asgd", "asks how far the weights have moved"),
        ("clip+rloo", r"configure it there and leave out \+rloo"),
        ("reinforce+kl(anchor=reference)", "needs reference_logp"),
    ],
)
def test_refused(method: str, reason: str) -> None:
    for hook, suffix in ((TOKENS, "+token-mean"), (ROWS, "+seq-mean-token-mean(empty=counted)")):
        with pytest.raises(UsageError, match=reason):
            bind(method + suffix, hook)


def test_a_proximal_policy_is_needed_where_there_is_none() -> None:
    with pytest.raises(UsageError, match="needs proximal_logp"):
        bind("decoupled+token-mean", replace(TOKENS, proximal=False))
    bind("decoupled(proximal=behavior)+token-mean", replace(TOKENS, proximal=False))


@pytest.mark.parametrize(
    ("method", "hook", "reason"),
    [
        ("tis", TOKENS, r"seq-mean-token-mean cannot be made exactly; write \+token-mean"),
        ("tis", ROWS, r"divides by the number of rows, from which seq-mean-token-mean .*empty=counted"),
        ("tis+token-mean", ROWS, "from which token-mean cannot be made"),
        ("tis+seq-mean-token-sum-norm(empty=counted)", ROWS, "cannot be made exactly"),
        ("tis+seq-mean-token-mean(empty=counted,over=tokens)", ROWS, "cannot be made exactly"),
        ("clip(nonfinite=drop)+token-mean", TOKENS, "counts all tokens, also those that nonfinite=drop drops"),
        ("clip+opsm(rejected=dropped)+token-mean", TOKENS, "also those that opsm drops"),
        ("clip+nonsense", TOKENS, "nonsense"),
    ],
)
def test_an_averaging_that_does_not_come_out_is_refused(method: str, hook: Hook, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        bind(method, hook)


def test_only_what_is_proportional_to_the_advantage_passes_where_its_scale_is_unknown() -> None:
    scaled = replace(TOKENS, scaled_advantage=True)
    proportional = supported(scaled)
    assert {"tis+token-mean", "vespo+token-mean"} <= set(proportional) < set(supported(TOKENS))
    with pytest.raises(UsageError, match="not proportional"):
        bind("dro+token-mean", scaled)
    rows = hook_rows()
    twice = replace(rows, advantage=2 * rows.advantage)
    for text in supported(TOKENS):
        method = parse_method(text)
        same = torch.allclose(wanted_gradient(method, twice), 2 * wanted_gradient(method, rows), rtol=1e-9)
        assert same or not scales_with_advantage(method), text


def weigh_one(bad: Callable[[Tensor], Tensor]) -> dict[str, float]:
    rows = hook_rows()
    weighed = bind("tis+token-mean", TOKENS).weigh(
        logp=bad(rows.logp[:2]), behavior_logp=rows.behavior_logp[:2], advantage=rows.advantage[:2], mask=rows.mask[:2]
    )
    assert weighed.metrics["not_finite"] == 0.0 or not weighed.coefficients.any()
    return weighed.metrics


def test_rows_that_are_not_finite_get_nothing() -> None:
    assert weigh_one(lambda logp: logp)["not_finite"] == 0.0
    assert weigh_one(lambda logp: torch.full_like(logp, torch.nan))["not_finite"] == 1.0
