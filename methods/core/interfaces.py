"""What each slot of a method may do. A part is a `MethodComponent` with one of these interfaces.

What a part must define is abstract: a plug-in that forgot it is refused by name when it is loaded.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.component import MethodComponent
from vcpo_bench.methods.core.reach import Scope
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

    @abstractmethod
    def admit(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]` bool, the rows to keep."""


@dataclass(frozen=True, kw_only=True)
class Baseline(Part):
    """Turns rewards into advantages.

    `empty` says how a valid row without a token in play enters the statistics of its group and of the batch: `counted`
    with its reward (TRL, prime-rl), as `zero` (verl and VCPO, which sum the rewards of tokens that carry loss), or
    `skipped` (NeMo-RL). It has no coefficient in any case.
    """

    slot: ClassVar[str] = "baseline"
    sees: ClassVar[Scope] = Scope.GROUP
    common: ClassVar[tuple[str, ...]] = ("empty",)
    empty: str = choice("counted", "zero", "skipped")

    @abstractmethod
    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`, or `[..., P, G, T]` for advantages per token."""


@dataclass(frozen=True, kw_only=True)
class Weight(MethodComponent):
    """A weight that multiplies the advantage. Weights are methods of their own, too (`WeightMethod`)."""

    slot: ClassVar[str] = "weight"

    @abstractmethod
    def weight(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, 1|T]` u >= 0, detached."""

    def capped(self, ev: EvidenceView) -> Tensor | None:
        """`[..., P, G, 1|T]` bool: where a bound of the weight acts, for `share_clipped`; None: nowhere."""
        return None


@dataclass(frozen=True, kw_only=True)
class Mask(Part):
    """Rejects tokens or rows.

    `rejected=counted` leaves them in the denominators of the aggregation (their gradient is 0 but for that of
    regularizers, which no mask of this kind rejects),
    `rejected=dropped` treats them as if they had never been there, and `rejected=apart` leaves them out of the
    row statistics of the surrogate but counts them in the denominators (AReaL). Step rule and weights added with `+`
    come before masks and see every token: the row weight of `reinforce+tis` keeps what that of `tis` drops.
    """

    slot: ClassVar[str] = "mask"
    rejected: str = choice("counted", "dropped", "apart")

    @abstractmethod
    def keep(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` or `[..., P, G, 1]` bool, True where the token is kept."""


@dataclass(frozen=True, kw_only=True)
class Regularizer(Part):
    """Adds a term to the coefficient that does not depend on the advantage."""

    slot: ClassVar[str] = "regularizer"

    def addend(self, ev: EvidenceView) -> Tensor | None:
        """`[..., P, G, T]` l in c = N ((A u + k) keep + l), or None."""
        return None

    def penalty(self, ev: EvidenceView) -> Tensor | None:
        """`[..., P, G, T]` what to subtract from the advantage before anything multiplies it, or None."""
        return None

    def entropy(self, ev: EvidenceView) -> Tensor | None:
        """`[..., P, G, T]` or broadcastable: minus the derivative of the loss in the token's entropy, before N."""
        return None

    def vocabulary(self, ev: EvidenceView) -> Tensor | None:
        """`[..., P, G, T, V]` minus the loss's derivative in each token's log-probability, drawn or not, before N."""
        return None


@dataclass(frozen=True, kw_only=True)
class Aggregation(Part):
    """Says how much one token of each row counts."""

    slot: ClassVar[str] = "aggregation"
    sees: ClassVar[Scope] = Scope.BATCH

    @abstractmethod
    def factor(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]` N, the same for every token of a row; 0 for rows without tokens."""


@dataclass(frozen=True, kw_only=True)
class Step(Part):
    """Decides the multiplier of the learning rate.

    One that defines `combine` or `compensate` changes the gradient, too; the learner then keeps the previous gradient
    or past weights for it.
    """

    slot: ClassVar[str] = "step"

    @abstractmethod
    def scale(self, ev: EvidenceView) -> Tensor:
        """Leading shape: the multiplier."""

    def combine(self, dots: tuple[float, float, float]) -> tuple[float, float]:
        """The gradient to apply is a g + b p, g this update's gradient and p that of the update before.

        Args:
            dots: `(<g, g>, <g, p>, <p, p>)`.

        Returns:
            `(a, b)`; here `(1, 0)`, which leaves the gradient as it is.
        """
        return 1.0, 0.0

    @property
    def acts_on_gradient(self) -> bool:
        """Whether it defines `combine`."""
        return type(self).combine is not Step.combine

    def compensate(self, gradient: Tensor, drift: Tensor) -> Tensor:
        """`[D]` the gradient to apply.

        Args:
            gradient: `[D]` this update's gradient of the trained parameters.
            drift: `[D]` the current weights minus those that sampled the batch, the mean over its rows.
        """
        return gradient

    @property
    def compensates_delay(self) -> bool:
        """Whether it defines `compensate`."""
        return type(self).compensate is not Step.compensate

    @property
    def needs_series(self) -> str | None:
        """Expression of the cell whose step scales this rule uses, or None."""
        return None

    def with_series(self, values: Sequence[float], rng_seed: int) -> Step:
        """The same rule, carrying the other cell's step scales; itself where it borrows none.

        Args:
            values: Its step scales, one per update, in order.
            rng_seed: Seed of the order, where there is one.
        """
        return self
