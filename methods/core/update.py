"""What a method returns: the gradient coefficient of every token and the size of the step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vcpo_bench.lazy_torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Update:
    """The learner does `logp.backward(-coefficients)` and steps with `lr * step_scale`; it never rescales.

    Attributes:
        coefficients: `[..., P, G, T]` minus dLoss/dlogp, aggregation included; exactly 0 at masked tokens.
        step_scale: Multiplier of the learning rate, of the leading shape `...`.
        entropy_coefficients: `[..., P, G, T]` minus dLoss/dentropy, or None.
        vocabulary_coefficients: `[..., P, G, T, V]` minus the loss's derivative in `vocabulary_logp`, further to the
            coefficients of the tokens drawn, or None.
        state: Tensors to save with the checkpoint and hand back in the next batch.
        metrics: Scalars of the leading shape: `share_clipped`, the share of the tokens carrying loss whose gradient
            the surrogate removed or whose weight a cap holds; `share_masked`, the share that masks rejected;
            `ess_ratio` of the raw sequence weights current/behavior, `ess_ratio_used` of the weights that
            multiply the advantage (mean over the tokens of a row; NaN when the method applies no weight).
    """

    coefficients: Tensor
    step_scale: Tensor
    entropy_coefficients: Tensor | None = None
    vocabulary_coefficients: Tensor | None = None
    state: Mapping[str, Tensor] = field(default_factory=dict)
    metrics: Mapping[str, Tensor] = field(default_factory=dict)
