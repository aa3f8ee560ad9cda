"""kv-cache: the precision of cached keys and values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from vcpo_bench.bench.policies.base import Decoding
from vcpo_bench.bench.replay.mismatch.component import MismatchComponent
from vcpo_bench.bench.replay.mismatch.path import SamplingPath
from vcpo_bench.bench.replay.mismatch.setup import MismatchSetup
from vcpo_bench.naming.parameters import choice

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}


@dataclass(frozen=True, kw_only=True)
class KvCache(MismatchComponent):
    """Keys and values are rounded when they are cached. A token attends to its own before they are.

    Attributes:
        to: Precision; `fp8` is e4m3 with scale 1, as vLLM's `fp8` without calibration.
    """

    name = "kv-cache"
    summary = "cached keys and values rounded"
    to: str = choice("bf16", "fp16", "fp8")

    def why_not(self, setup: MismatchSetup) -> str:
        """See `MismatchComponent.why_not`."""
        return "the engine's cache has the precision it was started with" if setup.engine else ""

    def switched(self, path: SamplingPath, setup: MismatchSetup) -> SamplingPath:
        """See `MismatchComponent.switched`."""
        return replace(path, after_token=self._round)

    def _round(self, decoding: Decoding) -> None:
        with torch.inference_mode():
            for cache in decoding.caches:
                filled = cache[:, :, :, : decoding.position]
                filled.copy_(filled.to(_DTYPES[self.to]).to(cache.dtype))
