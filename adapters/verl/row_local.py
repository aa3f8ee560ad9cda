"""Which methods a policy loss of verl can carry out: it sees one micro-batch, and nothing but log-probabilities."""

from __future__ import annotations

from collections.abc import Iterator

from vcpo_bench.adapters.locality import Locality, Scope, locality_of
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Method

AVERAGES = ("token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean")
"""What `agg_loss` of verl can do, by the names it shares with ours."""
OFFER = "use trainer.v1.trainer_mode=vcpo_bench"


def check_row_local(method: Method) -> None:
    """Refuse a method that would not be exact one micro-batch at a time.

    Raises:
        UsageError: With the first reason, and what to change.
    """
    for reason in reasons(method):
        raise UsageError(f"{method.canonical} as a policy loss of verl: {reason}")


def reasons(method: Method) -> Iterator[str]:
    """Why a method cannot be a policy loss of verl; nothing for those that can."""
    locality = locality_of(method)
    yield from _of_evidence(locality)
    if locality.loss > Scope.ROW:
        yield f"it needs {locality.loss.phrase}, and a policy loss sees one micro-batch of one rank; {OFFER}"
    if locality.scales_step:
        yield f"it scales the optimizer step by what all rows say, and a policy loss sees one micro-batch; {OFFER}"
    yield from _of_parts(method)


def _of_evidence(locality: Locality) -> Iterator[str]:
    if locality.borrows is not None:
        yield f"it borrows the step scales of another run ({locality.borrows}), which only vcpo-bench run can hand over"
    if locality.acts_on_gradient:
        yield "it changes the gradient of the whole step, which a policy loss does not see"
    if locality.measures_drift:
        yield "it asks how far the weights have moved, which a policy loss does not see; use vcpo-bench run, or +ess"
    missing = sorted(locality.needs | locality.reads)
    if missing:
        yield f"it needs {', '.join(missing)}, which verl does not hand to its policy losses; {OFFER}"
    if locality.entropy_bonus:
        yield "its entropy bonus is no function of log-probabilities; set actor.entropy_coeff instead"


def _of_parts(method: Method) -> Iterator[str]:
    if any(part.slot == "baseline" for part in method.extras):
        yield (
            f"{method.baseline_part.name} would be ignored, since verl hands over its own advantage; set "
            f"algorithm.adv_estimator instead, or {OFFER}"
        )
    if method.aggregation_part.name not in AVERAGES:
        yield f"verl averages the loss itself and knows no {method.aggregation_part.name}; {OFFER}"
