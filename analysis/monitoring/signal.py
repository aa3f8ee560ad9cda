"""What a signal is: one number per update that might warn of a collapse.

Greater is more dangerous, and nothing comes from the future. The sign of each is written, not fitted: it is the
direction in which a paper, or plain sense, expects trouble. A signal that turns out to point the other way is reported
so; its sign is not changed.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.errors import UsageError
from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.component import Component, parameters
from vcpo_bench.records.steps import DIAGNOSTICS

Array = NDArray[np.float64]
Role = Literal["weights", "gradient", "policy", "reward", "circumstance"]

PRIMARY = "ess"
"""The signal whose prediction is the primary endpoint; every other comparison is exploratory."""


class Updates(Protocol):
    """The updates of one run in order, columns of `records.steps.STEPS`: a data frame, or what streams."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of updates."""

    @abstractmethod
    def __contains__(self, name: object, /) -> bool:
        """Whether there is such a column."""

    def __getitem__(self, name: str, /) -> Any:
        """One column, as an array or a series."""


@dataclass(frozen=True, kw_only=True)
class Signal(Component, ABC):
    """One signal. It has no parameters: the text of a detector, `SIGNAL(window=...)`, has no room for them.

    Class attributes:
        summary: What it measures, with its formula.
        role: What it looks at; `circumstance` is known without looking at the run at all.
        stacks: Whether `formula` also takes columns [N, S] of N runs of one length, which is quicker for thousands.
        columns: Columns of the table of updates it needs (`records.steps.STEPS`).
        memory: Updates that a value reaches back, itself included; None: to the beginning of the run.
    """

    role: ClassVar[Role]
    stacks: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]]
    memory: ClassVar[int | None] = 1

    @abstractmethod
    def formula(self, steps: Updates) -> Array:
        """Values [S] at each update of one run that has all `columns`; not finite where it cannot be said.

        Args:
            steps: The updates of one run in order, columns of `records.steps.STEPS`.
        """

    def of(self, steps: Updates) -> Array:
        """Values [S] at each update of one run; NaN where it cannot be said, everywhere if a column is missing.

        Args:
            steps: The updates of one run in order, columns of `records.steps.STEPS`.

        Raises:
            UsageError: The formula returns something else than one number for each update.
        """
        if any(name not in steps for name in self.columns):
            return np.full(len(steps), np.nan)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            made = self.formula(steps)
        try:
            values = np.asarray(made, dtype=np.float64)
        except (TypeError, ValueError):
            raise UsageError(f"signal {self.name}: its formula returned {_kind_of(made)}, not numbers") from None
        wanted = [list(np.shape(steps[name])) for name in self.columns[:1]]
        if wanted not in ([], [list(values.shape)]):
            raise UsageError(f"signal {self.name}: its formula returned {_kind_of(made)}, not {wanted[0]} numbers")
        return np.where(np.isfinite(values), values, np.nan)

    @classmethod
    def unfinished(cls) -> str:
        """What the class lacks, as the end of a sentence; empty: nothing."""
        absent = [name for name in ("role", "columns") if not hasattr(cls, name)]
        if absent:
            return f"does not say its {absent[0]}"
        if problem := super().unfinished():
            return problem
        if parameters(cls):
            return "has parameters; fix their values, or write one signal for each"
        if cls.role not in get_args(Role):
            return f"has the role {cls.role!r}; use one of {', '.join(get_args(Role))}"
        if unknown := [name for name in cls.columns if name not in DIAGNOSTICS]:
            return f"reads {unknown[0]!r}, which is no column; docs/columns.md lists them"
        return ""


def signal(role: Role, *, name: str = "", memory: int | None = 1) -> Callable[[Callable[..., Array]], type[Signal]]:
    """Make a signal of a function: its arguments are the columns it needs, its docstring says what it measures.

    The function takes one array [..., S] for each column, of any number of runs, and returns one of that shape: it
    works along the last axis.

    Args:
        role: See `Signal`.
        name: What a user types; default: the name of the function.
        memory: See `Signal`.
    """

    def made(formula: Callable[..., Array]) -> type[Signal]:
        columns = tuple(inspect.signature(formula).parameters)
        text = inspect.getdoc(formula) or ""
        members = {
            "__doc__": text,
            "__module__": formula.__module__,
            "name": name or formula.__name__,
            "summary": text.partition("\n\n")[0].replace("\n", " ").removesuffix("."),
            "role": role,
            "stacks": True,
            "columns": columns,
            "memory": memory,
            "formula": lambda self, steps: formula(*(column(steps, each) for each in columns)),
        }
        return type(formula.__name__, (Signal,), members)

    return made


SIGNALS = Catalog(
    "signal",
    Signal,  # type: ignore[type-abstract]  # the catalog makes objects of its subclasses only
    ["vcpo_bench.analysis.monitoring.signals"],
    template="vcpo_bench.analysis.monitoring.template",
)
"""Every signal."""


def all_signals() -> dict[str, Signal]:
    """Every signal by name, in the order of tables: `PRIMARY`, then by role, then by name."""
    roles = get_args(Role)
    ordered = sorted(SIGNALS.kinds.values(), key=lambda kind: (kind.name != PRIMARY, roles.index(kind.role), kind.name))
    return {kind.name: kind() for kind in ordered}


def _kind_of(made: object) -> str:
    """What a formula returned, in words."""
    return str(list(made.shape)) if isinstance(made, np.ndarray) else type(made).__name__


def column(steps: Updates, name: str) -> Array:
    """One column [S] as numbers."""
    return np.asarray(steps[name], dtype=np.float64)
