"""Built-in policies as a user names them, and the catalog that finds them: one file in `embedded/`, or a plug-in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from vcpo_bench.bench.tasks import TokenTask
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.component import Component

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.base import Policy


@dataclass(frozen=True, kw_only=True)
class EmbeddedPolicy(Component, ABC):
    """A small policy for the tasks of token ids, made for its task. A subclass is a frozen dataclass.

    Class attributes:
        stacked: Whether many cells of it train as one program (`bench.stack`).
        starts: Folder with the start files that ship with it, one per task; None: none do.
    """

    stacked: ClassVar[bool] = False
    starts: ClassVar[Path | None] = None

    @abstractmethod
    def untrained(self, task: TokenTask, seed: int) -> Policy:
        """A policy of a task with initial weights.

        Args:
            task: Its task.
            seed: Seed of the weights; the global random state is neither read nor changed.
        """


POLICIES = Catalog(
    "policy",
    EmbeddedPolicy,  # type: ignore[type-abstract]  # the catalog makes objects of subclasses only
    ["vcpo_bench.bench.policies.embedded"],
    plural="policies",
)
"""Every built-in policy, those of plug-ins included."""


def check_distributions(method: str, needs: Collection[str], model: str) -> None:
    """Refuse a method that asks for whole distributions, where they are not at hand.

    Args:
        method: Its expression.
        needs: Optional fields of a batch that it asks for.
        model: The language model that is trained; empty: a built-in policy.

    Raises:
        UsageError: It asks, and a language model is trained.
    """
    if "vocabulary_logp" in needs and model:
        raise UsageError(
            f"{method}: asks for the sampler's whole distribution at every token, for which a language model's "
            "vocabulary is too large; leave score-centering out, or use a built-in policy"
        )
