"""Tasks as a user names them, and the catalog that finds them: a task is one file in `bench/tasks`, or a plug-in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar

from vcpo_bench.errors import UsageError
from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.component import Component
from vcpo_bench.naming.errors import ExpressionError
from vcpo_bench.naming.grammar import Argument, NamedItem

_SCORER = "scorer"


@dataclass(frozen=True, kw_only=True)
class NamedTask(Component, ABC):
    """A task a user can name: one in tokens (`TokenTask`) or a text task (`TextTask`).

    Class attributes:
        needs_language_model: Whether its prompts are text, so that it takes a tokenizer to train on it.
        suits: Which policy can learn it: tiny, or LM (a language model) with its least size.
        in_turns: Whether an environment answers the policy between its turns.
        scorer_version: Raised whenever some response would be rewarded differently than before.
    """

    needs_language_model: ClassVar[bool] = False
    suits: ClassVar[str] = "tiny"
    in_turns: ClassVar[bool] = False
    scorer_version: ClassVar[int] = 1

    @property
    @abstractmethod
    def max_response(self) -> int:
        """Longest response in tokens; of a text task, what it suggests."""

    @property
    def canonical(self) -> str:
        """The canonical spelling: equal meaning, equal string."""
        return self.text()

    def settings(self) -> dict[str, str]:
        """The parameters that differ from their defaults.

        A scorer version above 1 is added, so that results of two scorers never share a cell.
        """
        version = {_SCORER: str(self.scorer_version)} if self.scorer_version > 1 else {}
        return super().settings() | version


class TaskCatalog(Catalog[NamedTask]):
    """The catalog of tasks; it also reads the scorer version that a canonical name may hold."""

    def build(self, text: str, item: NamedItem) -> NamedTask:
        """See `Catalog.build`; `scorer=N` must be the version the task has now.

        Raises:
            ExpressionError: It is another, or as `Catalog.build`.
        """
        kind = self.class_of(text)
        rest: list[Argument] = []
        for argument in item.arguments:
            if argument.key is None or argument.key.text != _SCORER:
                rest.append(argument)
            elif argument.value.text != str(kind.scorer_version):
                problem = f"this version of vcpo-bench has scorer {kind.scorer_version} of {kind.name} only"
                raise ExpressionError(text, argument.value.start, problem)
        return super().build(text, replace(item, arguments=tuple(rest)))


TASKS = TaskCatalog(
    "task",
    NamedTask,  # type: ignore[type-abstract]  # only its subclasses are ever made
    ["vcpo_bench.bench.tasks", "vcpo_bench.bench.tasks.text"],
    template="vcpo_bench.bench.tasks.template",
    to_subclass=("TokenTask", "TextTask"),
)
"""Every task, those of plug-ins included."""


def check_turns(method: str, needs: Collection[str], task: NamedTask) -> None:
    """Refuse a method that asks about turns, where a response is one.

    Args:
        method: Its expression.
        needs: Optional fields of a batch that it asks for.
        task: The task.

    Raises:
        UsageError: It asks, and the task has no environment.
    """
    if "void_turn" in needs and not task.in_turns:
        raise UsageError(f"{method}: {task.canonical} has no environment, hence no turns; drop void-turns")
