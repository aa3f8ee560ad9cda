"""Why a method would not be exact in a loss hook that sees single rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vcpo_bench.adapters.hook import AVERAGES, Divisor, Hook
from vcpo_bench.adapters.locality import Locality, locality_of, of_the_learner
from vcpo_bench.lazy_torch import torch
from vcpo_bench.methods import Batch, Method
from vcpo_bench.methods.core.interfaces import Aggregation
from vcpo_bench.methods.core.reach import Scope


def reasons_against(method: Method, hook: Hook) -> Iterator[str]:
    """Why a method is not exact in a hook; nothing if it is."""
    locality = locality_of(method)
    yield from of_the_learner(locality)
    yield from _of_evidence(locality, hook)
    yield from _of_the_step(locality, hook)
    yield from _of_the_advantage(method, hook)
    yield from _of_the_division(method, hook)


def _of_evidence(locality: Locality, hook: Hook) -> Iterator[str]:
    if locality.loss > Scope.ROW:
        yield f"it needs {locality.loss.phrase}, and its loss hook sees single rows; {hook.advice}"
    for name in sorted(locality.reads):
        yield f"it reads the {name} of each row, which does not reach the loss hook; {hook.advice}"
    missing = locality.needs - ({"proximal_logp"} if hook.proximal else set())
    if missing:
        yield f"it needs {', '.join(sorted(missing))}, which the loss hook does not hand over; {hook.advice}"
    if locality.entropy_bonus:
        yield "its loss has a term in the entropy, which is not differentiable in the loss hook"


def _of_the_step(locality: Locality, hook: Hook) -> Iterator[str]:
    if locality.scales_step:
        yield (
            "it scales the learning rate by a number that all rows decide, and a loss hook cannot change the step; "
            f"{hook.advice}"
        )
    if locality.acts_on_gradient:
        yield "it changes the whole gradient, which a loss hook does not see"
    if locality.state:
        yield "it keeps state from update to update, which a loss hook has no place for"


def _of_the_advantage(method: Method, hook: Hook) -> Iterator[str]:
    added = [part for part in method.extras if part.slot == "baseline"]
    if added:
        yield f"the advantage is the trainer's: configure it there and leave out +{added[0].name}"
    if hook.scaled_advantage and not scales_with_advantage(method):
        yield (
            "advantages arrive divided by a number of the whole mini-batch, and its coefficients are not proportional "
            "to them"
        )


def _of_the_division(method: Method, hook: Hook) -> Iterator[str]:
    if not _comes_out(method.parts.aggregation, hook.divisor):
        yield (
            f"the trainer divides by {hook.divisor.value}, from which {method.parts.aggregation.text()} cannot be made "
            f"exactly; write {hook.divisor.parts}"
        )
    dropping = [mask.name for mask in method.parts.masks if mask.rejected == "dropped"]
    if hook.divisor is not Divisor.ROWS and (dropping or method.nonfinite == "drop"):
        names = ", ".join(dropping) or "nonfinite=drop"
        yield f"the trainer counts all tokens, also those that {names} drops; use rejected=counted or nonfinite=zero"


def _comes_out(aggregation: Aggregation, divisor: Divisor) -> bool:
    """Whether the trainer's division makes this aggregation of the sum over rows."""
    if divisor is not Divisor.ROWS:
        return aggregation.name in (AVERAGES if divisor is Divisor.SETTING else ("token-mean",))
    if aggregation.name == "luspo-mean":
        return True
    settings = {name: getattr(aggregation, name, None) for name in ("empty", "over", "horizon")}
    return (
        aggregation.name in ("seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm")
        and settings["empty"] == "counted"
        and settings["over"] in (None, "rows")
        and settings["horizon"] != 0
    )


def scales_with_advantage(method: Method) -> bool:
    """Whether twice the advantage makes twice the coefficients, measured on rows from nearly on policy to far off."""
    generator = torch.Generator().manual_seed(0)
    shape, spread = (64, 1, 1, 8), torch.logspace(-2, 0.5, 64, dtype=torch.float64)[:, None, None, None]
    logp = -0.1 - 3.0 * torch.rand(shape, generator=generator, dtype=torch.float64)
    noise = torch.randn((2, *shape), generator=generator, dtype=torch.float64)
    batch = Batch(
        logp=logp,
        behavior_logp=(logp + spread * noise[0]).clamp(max=-1e-3),
        proximal_logp=(logp + 0.5 * spread * noise[0]).clamp(max=-1e-3),
        mask=torch.ones(shape, dtype=torch.bool),
        valid=torch.ones(shape[:-1], dtype=torch.bool),
        reward=torch.zeros(shape[:-1], dtype=torch.float64),
        version=torch.zeros(shape, dtype=torch.int64),
        now=0,
        advantage=noise[1][..., :1].expand(shape),
    )
    assert batch.advantage is not None
    one = method(batch).coefficients
    return all(
        torch.allclose(method(replace(batch, advantage=factor * batch.advantage)).coefficients, factor * one, rtol=1e-6)
        for factor in (1 / 256, 2.0)
    )
