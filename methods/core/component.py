"""The common root of methods and parts: what `naming` knows of every component, and what only these have."""

from abc import ABC
from dataclasses import MISSING, dataclass, fields
from typing import ClassVar

from vcpo_bench.methods.core.batch import Batch
from vcpo_bench.methods.core.reach import Reach, Scope
from vcpo_bench.naming.component import Component
from vcpo_bench.naming.parameters import KEY

SLOTS = (
    "admission", "baseline", "method", "weight", "mask", "regularizer", "aggregation", "step",
)  # fmt: skip
"""The slots of a method, in the order they act."""


@dataclass(frozen=True, kw_only=True)
class MethodComponent(Component, ABC):
    """A method or one of its parts: something with a name in the literature.

    Class attributes:
        slot: Which of `SLOTS` it fills.
        reference: Paper, with its arXiv number where there is one.
        year: Year of the paper.
        formula: The equation, in plain text, notation of `docs/methods.md`.
        differences: Where frameworks or papers disagree, one remark each.
        host: For a part that makes a stabilizer of its own: the method it is added to when its name stands first, so
            that `opsm` means `clip+opsm`.
        revision: Raised whenever the numbers it produces change.
        sees: Rows that decide what one row gets. A trainer that shows fewer at a time refuses the method, so that this
            must be right; the tests measure it.
        reads: Of `reward` and `version`, what it reads besides log-probabilities and advantage.
        known_as: What trainers call it, in lower case with hyphens; a name here that leads to it in error messages.
    """

    bare_value: ClassVar[bool] = False
    slot: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    year: ClassVar[int] = 0
    known_as: ClassVar[tuple[str, ...]] = ()
    formula: ClassVar[str] = ""
    differences: ClassVar[tuple[str, ...]] = ()
    revision: ClassVar[int] = 1
    host: ClassVar[str] = ""
    sees: ClassVar[Scope] = Scope.ROW
    reads: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def unfinished(cls) -> str:
        """What the class lacks, as the end of a sentence; empty: nothing."""
        unknown = "" if cls.slot in SLOTS else f"has the slot {cls.slot!r}; use one of {', '.join(SLOTS)}"
        return super().unfinished() or unknown or cls._plain_field() or cls._unknown_need()

    @classmethod
    def _unknown_need(cls) -> str:
        known = [one.name for one in fields(Batch) if one.default is not MISSING or one.name in ("state", "version")]
        unknown = sorted(set(cls().needs).difference(known))
        return f"needs {unknown[0]!r}, which no batch has; use some of {', '.join(known)}" if unknown else ""

    @classmethod
    def _plain_field(cls) -> str:
        """A field with a number or a word as its default, which no expression could set and no key would show."""
        for each in fields(cls):
            if KEY in each.metadata or hasattr(MethodComponent, each.name):
                continue
            if isinstance(each.default, (bool, int, float, str)):
                kind = {bool: "flag", int: "integer", float: "number"}.get(type(each.default), "choice")
                wanted = f"{each.name}: {type(each.default).__name__} = {kind}({each.default!r})"
                return f"has the field {each.name}, which is no parameter; write {wanted}"
        return ""

    @classmethod
    def ships(cls) -> bool:
        """Whether it is one of ours: no plug-in file's or installed package's."""
        return cls.__module__.startswith("vcpo_bench.methods.")

    @property
    def own_revision(self) -> int:
        """Revision of its numbers under its present parameters: a change may concern some of them only."""
        return self.revision

    @property
    def version(self) -> int:
        """Raised whenever the numbers change; a method adds up its parts."""
        return self.own_revision

    @property
    def needs(self) -> frozenset[str]:
        """Optional fields of the batch this component reads."""
        return frozenset()

    @property
    def reach(self) -> Reach:
        """`sees` and `reads` under its present parameters."""
        return Reach(self.sees, self.reads)

    @property
    def anchors(self) -> dict[str, str]:
        """What each of its ratios is relative to: `{"what": "behavior" | "proximal" | ...}`."""
        return {}
