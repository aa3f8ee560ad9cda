"""What each slot of a method may do. A part is a `MethodComponent` with one of these interfaces.

A method that a part must define raises NotImplementedError with the names of both: an author who forgot it reads that
as the error of the cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from vcpo_bench.methods.core.component import MethodComponent
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class Part(MethodComponent):
    """A component that is added to a method with `+`."""


@dataclass(frozen=True, kw_only=True)
class Admission(Part):
    """Leaves rows out before baselines are computed; they count nowhere.

    `whole_groups=False` marks those that judge rows one by one; they act first.
    """

    slot: ClassVar[str] = "admission"
    whole_groups: ClassVar[bool] = True

    def admit(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]` bool, the rows to keep."""
        raise NotImplementedError(f"{type(self).__name__} must define admit()")


@dataclass(frozen=True, kw_only=True)
class Baseline(Part):
    """Turns rewards into advantages.

    `empty` says how a valid row without a token in play enters the statistics of its group and of the batch: `counted`
    with its reward (TRL, prime-rl), as `zero` (verl and VCPO, which sum the rewards of tokens that carry loss), or
    `skipped` (NeMo-RL). It has no coefficient in any case.
    """

    slot: ClassVar[str] = "baseline"
    common: ClassVar[tuple[str, ...]] = ("empty",)
    empty: str = choice("counted", "zero", "skipped")

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`, or `[..., P, G, T]` for advantages per token."""
        raise NotImplementedError(f"{type(self).__name__} must define advantage()")


@dataclass(frozen=True, kw_only=True)
class Weight(MethodComponent):
    """A weight that multiplies the advantage. Weights are methods of their own, too (`WeightMethod`)."""

    slot: ClassVar[str] = "weight"

    def weight(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, 1|T]` u >= 0, detached."""
        raise NotImplementedError(f"{type(self).__name__} must define weight()")

    def capped(self, ev: EvidenceView) -> Tensor | None:
        """`[..., P, G, 1|T]` bool: where a bound of the weight acts, for `share_clipped`; None: nowhere."""
        return None


@dataclass(frozen=True, kw_only=True)
class Mask(Part):
    """Rejects tokens or rows.

    `rejected=counted` leaves them in the denominators of the aggregation (their gradient is 0),
    `rejected=dropped` treats them as if they had never been there, and `rejected=apart` leaves them out of the
    row statistics of the surrogate but counts them in the denominators (AReaL).
    """

    slot: ClassVar[str] = "mask"
    rejected: str = choice("counted", "dropped", "apart")

    def keep(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` or `[..., P, G, 1]` bool, True where the token is kept."""
        raise NotImplementedError(f"{type(self).__name__} must define keep()")


@dataclass(frozen=True, kw_only=True)
class Regularizer(Part):
    """Adds a term to the coefficient that does not depend on the advantage."""

    slot: ClassVar[str] = "regularizer"

    def addend(self, ev: EvidenceView) -> Tensor | None:
        """`[..., P, G, T]` k in c = N (A u keep + k), or None."""
        return None

    def penalty(self, ev: EvidenceView) -> Tensor | None:
        """`[..., P, G, T]` what to subtract from the advantage before anything multiplies it, or None."""
        return None

    def entropy(self, ev: EvidenceView) -> Tensor | None:
        """`[..., P, G, T]` or broadcastable: minus the derivative of the loss in the token's entropy, before N."""
        return None


@dataclass(frozen=True, kw_only=True)
class Aggregation(Part):
    """Says how much one token of each row counts."""

    slot: ClassVar[str] = "aggregation"

    def factor(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]` N, the same for every token of a row; 0 for rows without tokens."""
        raise NotImplementedError(f"{type(self).__name__} must define factor()")


@dataclass(frozen=True, kw_only=True)
class Step(Part):
    """Decides the multiplier of the learning rate.

    Class attributes:
        acts_on_gradient: True when `combine` replaces the gradient; the learner then keeps the previous one.
        compensates_delay: True when `compensate` replaces the gradient; the learner then keeps past weights.
    """

    slot: ClassVar[str] = "step"
    acts_on_gradient: ClassVar[bool] = False
    compensates_delay: ClassVar[bool] = False

    def scale(self, ev: EvidenceView) -> Tensor:
        """Leading shape: the multiplier."""
        raise NotImplementedError(f"{type(self).__name__} must define scale()")

    def combine(self, dots: tuple[float, float, float]) -> tuple[float, float]:
        """The gradient to apply is a g + b p, g this update's gradient and p that of the update before.

        Args:
            dots: `(<g, g>, <g, p>, <p, p>)`.

        Returns:
            `(a, b)`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define combine()")

    def compensate(self, gradient: Tensor, drift: Tensor) -> Tensor:
        """`[D]` the gradient to apply.

        Args:
            gradient: `[D]` this update's gradient of the trained parameters.
            drift: `[D]` the current weights minus those that sampled the batch, the mean over its rows.
        """
        raise NotImplementedError(f"{type(self).__name__} must define compensate()")

    @property
    def needs_series(self) -> str | None:
        """Expression of the cell whose step scales this rule uses, or None."""
        return None

    def with_series(self, values: Sequence[float], rng_seed: int) -> "Step":
        """The same rule, carrying the other cell's step scales.

        Args:
            values: Its step scales, one per update, in order.
            rng_seed: Seed of the order, where there is one.
        """
        raise NotImplementedError(f"{type(self).__name__} must define with_series()")
