"""What a component of the mismatch is: one thing about a sampler that can be switched by itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.bench.replay.mismatch.path import SamplingPath
from vcpo_bench.bench.replay.mismatch.setup import MismatchSetup
from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.component import Component


@dataclass(frozen=True, kw_only=True)
class MismatchComponent(Component, ABC):
    """A way in which the sampler differs from the trainer. Each is one file of `components/`, or a plug-in.

    Class attributes:
        place: Components are switched on in this order: what chooses the weights comes before what rounds them.
    """

    place: ClassVar[int] = 1

    @property
    def lag(self) -> int:
        """Updates of the trainer that the sampler has not seen; only a component of lag says more than 0."""
        return 0

    def why_not(self, setup: MismatchSetup) -> str:
        """Why it cannot be switched for this sampler, as the end of a sentence; empty: it can."""
        return ""

    @abstractmethod
    def switched(self, path: SamplingPath, setup: MismatchSetup) -> SamplingPath:
        """The path with this component on."""


COMPONENTS = Catalog(
    "component",
    MismatchComponent,  # type: ignore[type-abstract]  # the catalog makes objects of subclasses only
    ["vcpo_bench.bench.replay.mismatch.components"],
)
"""Every component of the mismatch that can be named."""
