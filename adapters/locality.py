"""What each method must see to be exact: one row, the rows of a prompt, or the whole batch of an optimizer step.

An adapter asks `locality_of` what a trainer has to provide, and refuses before the first step what it cannot. What the
method objects know about themselves is asked of them: fields of the batch, state, step rules, and how far each
component reaches. `tests/adapters/test_locality.py` measures it for every method and part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vcpo_bench.methods import Method, Regularizer
from vcpo_bench.methods.core.component import MethodComponent
from vcpo_bench.methods.core.reach import Reach, Scope

PROXY = (
    "use the proxy that needs no norms (add +otb), or a plain baseline (vcpo(baseline=group), or add +grpo); the rest "
    "of the method stays exact"
)
"""What to do where score norms cannot be had."""


@dataclass(frozen=True)
class Locality:
    """What one method needs.

    Attributes:
        loss: Rows that decide the coefficients of one row when advantage and aggregation are the trainer's: those of
            admissions, weights, masks, regularizers and the surrogate.
        baseline: Rows that decide the advantage of one row.
        aggregation: Rows that decide how much a token of one row counts.
        scales_step: Whether the learning rate is multiplied by a number that all rows decide.
        reads: What the loss reads beside log-probabilities and advantage: `reward`, `version`.
        step_reads: What the step rule reads beside log-probabilities: `version`.
        needs: Optional fields of the batch: `score_norm_sq`, `sum_pi_sq`, `entropy`, `proximal_logp`,
            `reference_logp`, `parameter_distance`, `update_norm`.
        entropy_bonus: Whether the loss has a term in the policy's entropy, which no coefficient of a log-probability
            expresses.
        state: Whether something must be kept from one update to the next.
        acts_on_gradient: Whether it needs the gradient of the update before.
        measures_drift: Whether it asks how far the weights have moved.
        borrows: Expression of the run whose step scales it uses; None for nearly all.
        counts_turns: Whether it asks what the turns of an episode were.
        centers_scores: Whether it asks for whole distributions over the vocabulary, the sampler's among them.
    """

    loss: Scope
    baseline: Scope
    aggregation: Scope
    scales_step: bool
    reads: frozenset[str]
    step_reads: frozenset[str]
    needs: frozenset[str]
    entropy_bonus: bool
    state: bool
    acts_on_gradient: bool
    measures_drift: bool
    borrows: str | None
    counts_turns: bool
    centers_scores: bool

    @property
    def whole(self) -> Scope:
        """Rows that decide everything, aggregation and step included."""
        return Scope.BATCH if self.scales_step else max(self.loss, self.baseline, self.aggregation)


_EVERYTHING = Reach(Scope.BATCH, frozenset({"reward", "version"}))


def reach_of(part: MethodComponent) -> Reach:
    """How far one component reaches; of a plug-in's nothing is known, so that it may need everything."""
    return part.reach if part.ships() else _EVERYTHING


def locality_of(method: Method) -> Locality:
    """What a trainer has to provide for this method to be exact."""
    loss = [reach_of(part) for part in _loss_parts(method)]
    step = reach_of(method.parts.step)
    return Locality(
        loss=max(one.scope for one in loss),
        baseline=reach_of(method.parts.baseline).scope,
        aggregation=reach_of(method.parts.aggregation).scope,
        scales_step=step.scope > Scope.ROW or method.needs_series is not None,
        reads=_union(one.reads for one in loss),
        step_reads=step.reads,
        needs=method.needs - {"state"},
        entropy_bonus=any(type(part).entropy is not Regularizer.entropy for part in method.parts.regularizers),
        state="state" in method.needs,
        acts_on_gradient=method.combine is not None,
        measures_drift=bool(method.measures_drift),
        borrows=method.needs_series,
        counts_turns="void_turn" in method.needs,
        centers_scores="vocabulary_logp" in method.needs,
    )


def of_the_learner(locality: Locality) -> Iterator[str]:
    """Why no trainer but our own can carry a method out; nothing where others can."""
    if locality.borrows is not None:
        yield f"it borrows the step scales of another run ({locality.borrows}), which only vcpo-bench run can hand over"
    if locality.counts_turns:
        yield "it asks which episodes had a void turn, which only vcpo-bench run counts; drop void-turns"
    if locality.centers_scores:
        yield (
            "it asks for the sampler's whole distributions, which only vcpo-bench run records; for score "
            "centering use the trainer's own (SkyRL, NeMo-RL, prime-rl)"
        )
    if locality.measures_drift:
        yield "it asks how far the weights have moved, which only the learner of vcpo-bench run measures; use +ess"


def without_run(locality: Locality, sharded: bool) -> Iterator[str]:
    """Why no run of another trainer with one update per batch carries a method out; known before there is a run.

    Args:
        locality: What the method needs.
        sharded: Whether the weights are split among processes.
    """
    yield from of_the_learner(locality)
    if "proximal_logp" in locality.needs:
        yield "it needs a proximal policy, which with one update per batch is the current one; write anchor=behavior"
    if sharded and locality.acts_on_gradient:
        yield "it compares whole gradients, and these are sharded"


def _loss_parts(method: Method) -> tuple[MethodComponent, ...]:
    return (method, *method.parts.admissions, *method.parts.weights, *method.parts.masks, *method.parts.regularizers)


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)
