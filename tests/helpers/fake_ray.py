"""As much of Ray's interface as our side calls, without processes: an actor is its object, a call runs at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class RayError(Exception):
    """As in `ray.exceptions`, like the ones below."""


class TaskCancelledError(RayError):
    pass


class ActorUnavailableError(RayError):
    pass


class GetTimeoutError(RayError):
    pass


class ActorDiedError(RayError):
    pass


class Reference:
    """What a call returns: a value, or what it raises."""

    def __init__(self, value: Any = None, problem: Exception | None = None, ready: bool = True) -> None:
        self.value, self.problem, self.ready = value, problem, ready


class FakeRay(ModuleType):
    """Stands for the package `ray` until the test ends.

    Attributes:
        actors: Objects of the named actors.
        away: What calls of actors raise; None: they answer.
        refused: What Ray raises for a task that needs too much; decided by `refuses`.
        started: References of tasks that Ray took, by name.
        machines: What `ray.nodes` returns.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__("ray")
        self.actors: dict[str, Any] = {}
        self.away: Exception | None = None
        self.refuses: Callable[[dict[str, Any]], bool] = lambda options: False
        self.started: dict[str, Reference] = {}
        self.machines: list[dict[str, Any]] = []
        self.timeouts: list[float | None] = []
        self.exceptions = SimpleNamespace(
            RayError=RayError,
            TaskCancelledError=TaskCancelledError,
            ActorUnavailableError=ActorUnavailableError,
            GetTimeoutError=GetTimeoutError,
        )
        patch.setitem(sys.modules, "ray", self)

    def add(self, name: str, actor: object) -> None:
        self.actors[name] = _Actor(self, actor)

    def get_actor(self, name: str, namespace: str) -> Any:
        if name not in self.actors:
            raise ValueError(f"Failed to look up actor with name {name!r}")
        return self.actors[name]

    def remote(self, kind: Any) -> Any:
        return SimpleNamespace(options=lambda **options: self._optioned(kind, options))

    def _optioned(self, kind: Any, options: dict[str, Any]) -> Any:
        if isinstance(kind, type):
            return SimpleNamespace(remote=lambda *arguments: self._begin(options["name"], kind(*arguments)))
        if self.refuses(options):
            raise ValueError("Resource quantities >1 must be whole numbers.\nThe specified quantity 1.5 is not.")
        return SimpleNamespace(remote=lambda *_: self.started.setdefault(options["name"], Reference(ready=False)))

    def _begin(self, name: str, actor: object) -> Any:
        self.add(name, actor)
        return self.actors[name]

    def get(self, found: Any, timeout: float | None = None) -> Any:
        self.timeouts.append(timeout)
        if isinstance(found, list):
            return [self.get(one) for one in found]
        if found.problem is not None:
            raise found.problem
        return found.value

    def wait(
        self, references: Sequence[Reference], num_returns: int, timeout: float
    ) -> tuple[list[Reference], list[Reference]]:
        return [one for one in references if one.ready], [one for one in references if not one.ready]

    def cancel(self, reference: Reference, force: bool) -> None:
        reference.problem, reference.ready = TaskCancelledError(), True

    def nodes(self) -> list[dict[str, Any]]:
        return self.machines


class _Actor:
    def __init__(self, ray: FakeRay, actor: object) -> None:
        self._ray, self._object = ray, actor

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=lambda *arguments: self._call(name, arguments))

    def _call(self, name: str, arguments: tuple[Any, ...]) -> Reference:
        if self._ray.away is not None:
            return Reference(problem=self._ray.away)
        return Reference(getattr(self._object, name)(*arguments))
