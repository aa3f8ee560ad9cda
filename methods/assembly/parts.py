"""The parts of a method: those it brings, and those added with `+`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from vcpo_bench.methods.core.component import MethodComponent
from vcpo_bench.methods.core.interfaces import Admission, Aggregation, Baseline, Mask, Regularizer, Step, Weight
from vcpo_bench.methods.parts.constant import Constant
from vcpo_bench.methods.parts.grpo import Grpo
from vcpo_bench.methods.parts.seq_mean_token_mean import SeqMeanTokenMean


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a method has beside its surrogate.

    Attributes:
        admissions: Rows left out: those that judge single rows before those that judge groups.
        baseline: From rewards to advantages.
        aggregation: How much a token counts.
        step: The size of the step.
        weights: Their product multiplies the advantage.
        masks: Tokens rejected.
        regularizers: Penalties and pulls.
    """

    admissions: tuple[Admission, ...] = ()
    baseline: Baseline = field(default_factory=Grpo)
    aggregation: Aggregation = field(default_factory=SeqMeanTokenMean)
    step: Step = field(default_factory=Constant)
    weights: tuple[Weight, ...] = ()
    masks: tuple[Mask, ...] = ()
    regularizers: tuple[Regularizer, ...] = ()

    def __iter__(self) -> Iterator[MethodComponent]:
        """All of them."""
        yield from self.admissions
        yield from (self.baseline, self.aggregation, self.step)
        yield from (*self.weights, *self.masks, *self.regularizers)

    def with_added(self, added: Sequence[MethodComponent]) -> Parts:
        """The parts in force: an added baseline, aggregation or step rule replaces one, others join."""
        admissions = (*self.admissions, *_of(added, Admission))
        return Parts(
            admissions=tuple(sorted(admissions, key=lambda part: part.whole_groups)),
            baseline=next(iter(_of(added, Baseline)), self.baseline),
            aggregation=next(iter(_of(added, Aggregation)), self.aggregation),
            step=next(iter(_of(added, Step)), self.step),
            weights=(*self.weights, *_of(added, Weight)),
            masks=(*self.masks, *_of(added, Mask)),
            regularizers=(*self.regularizers, *_of(added, Regularizer)),
        )


def _of(parts: Sequence[MethodComponent], kind: type[Any]) -> tuple[Any, ...]:
    return tuple(part for part in parts if isinstance(part, kind))
