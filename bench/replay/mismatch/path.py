"""The path on which a sampler makes tokens: everything a component can switch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from vcpo_bench.bench.policies.base import Decoding
from vcpo_bench.bench.policies.truncation import Truncation


@dataclass(frozen=True)
class SamplingPath:
    """How responses are drawn. As made from the weights alone it is the exact path: nothing is rounded or cut.

    Attributes:
        weights: What the sampler holds, by parameter name.
        prompts_at_once: Prompts whose responses are drawn together; 0: all.
        truncation: How each distribution is cut before a token is drawn; None: not at all.
        after_token: Called after every token with the decoding, whose caches it may change in place.
    """

    weights: Mapping[str, Tensor]
    prompts_at_once: int = 0
    truncation: Truncation | None = None
    after_token: Callable[[Decoding], None] | None = None
