"""The common root of methods and parts: a frozen dataclass with a name, parameters and a canonical spelling."""

from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, ClassVar

from vcpo_bench.methods.core.errors import ParameterError
from vcpo_bench.naming.parameters import KEY, Parameter

SLOTS = (
    "admission",
    "baseline",
    "method",
    "weight",
    "mask",
    "regularizer",
    "aggregation",
    "step",
)
"""The slots of a method, in the order they act."""


@dataclass(frozen=True, kw_only=True)
class Component:
    """Something with a name in the literature and parameters: a method or one of its parts.

    Class attributes:
        name: The word used in expressions. Lower case, with hyphens.
        slot: Which of `SLOTS` it fills.
        summary: One line: what it does and on what it acts.
        reference: Paper, with its arXiv number where there is one.
        year: Year of the paper.
        formula: The equation, in plain text, notation of `docs/methods.md`.
        differences: Where frameworks or papers disagree, one remark each.
        host: For a part that makes a stabilizer of its own: the method it is added to when its name stands first, so
            that `opsm` means `clip+opsm`.
        revision: Raised whenever the numbers it produces change.
        source: Digest of the plug-in file it was loaded from; empty for what ships and for installed packages.
    """

    name: ClassVar[str] = ""
    slot: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    year: ClassVar[int] = 0
    formula: ClassVar[str] = ""
    differences: ClassVar[tuple[str, ...]] = ()
    revision: ClassVar[int] = 1
    host: ClassVar[str] = ""
    source: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Refuse illegal parameter values.

        Raises:
            ParameterError: Names the component, the parameter, the value and the legal values.
        """
        for name, (_, parameter) in parameters(type(self)).items():
            value = getattr(self, name)
            try:
                parameter.check(value)
            except ValueError as error:
                raise ParameterError(f"{self.name}: {name}={value!r} {error}") from None

    @property
    def version(self) -> int:
        """Raised whenever the numbers change; a method adds up its parts."""
        return self.revision

    @property
    def needs(self) -> frozenset[str]:
        """Optional fields of the batch this component reads."""
        return frozenset()

    @property
    def anchors(self) -> dict[str, str]:
        """What each of its ratios is relative to: `{"what": "behavior" | "proximal" | ...}`."""
        return {}

    def text(self) -> str:
        """Canonical spelling: the name and the non-default parameters in alphabetical order."""
        shown = [
            f"{name}={parameter.write(getattr(self, name))}"
            for name, (default, parameter) in sorted(parameters(type(self)).items())
            if getattr(self, name) != default
        ]
        return f"{self.name}({','.join(shown)})" if shown else self.name


def parameters(kind: type[Component]) -> dict[str, tuple[Any, Parameter]]:
    """The parameters of a component class: name to (default, how it is read and written)."""
    found: dict[str, tuple[Any, Parameter]] = {}
    each: Field[Any]
    for each in fields(kind):
        parameter = each.metadata.get(KEY)
        if parameter is not None and each.default is not MISSING:
            found[each.name] = (each.default, parameter)
    return found
