r"""math: competition problems with an answer in `\boxed{}` (Hendrycks et al. 2021)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import ClassVar

from vcpo_bench.bench.tasks.text.base import Item, Split
from vcpo_bench.bench.tasks.text.items.data_task import DataTask
from vcpo_bench.bench.tasks.text.items.rows import HubSet, Row
from vcpo_bench.bench.tasks.text.scoring.boxed import last_boxed
from vcpo_bench.bench.tasks.text.scoring.confined import confined_judge
from vcpo_bench.bench.tasks.text.scoring.math_answers import same_answer
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.parameters import text

Judge = Callable[[str, str], bool]
"""Whether the first answer, the right one, and the second are the same."""

OWN, PACKAGE = "own", "math-verify"


def full_name(judge: str) -> str:
    """The name of a judge, for math-verify with its version: another one may judge differently.

    Args:
        judge: `own`, `math-verify`, or `math-verify/0.9.0` to insist on a version.

    Raises:
        UsageError: There is no such judge, or the package is missing or has another version.
    """
    if judge == OWN:
        return OWN
    package, _, wanted = judge.partition("/")
    if package != PACKAGE:
        raise UsageError(f"math(judge={judge}): choose own or math-verify")
    try:
        found = version(PACKAGE)
    except PackageNotFoundError as error:
        raise UsageError(f"math(judge={judge}): the package is missing: pip install math-verify") from error
    if wanted not in ("", found):
        raise UsageError(f"math(judge={judge}): {found} is installed; pip install {PACKAGE}=={wanted}, or leave it out")
    return f"{PACKAGE}/{found}"


def judge_named(name: str) -> Judge:
    """The judge with that full name."""
    return same_answer if name == OWN else _verified


def _verified(right: str, given: str) -> bool:
    """The verdict of math-verify on two boxed answers; False where it cannot read one, fails or meets a limit."""
    return confined_judge(PACKAGE).right(right, given)


_INSTRUCTION = r"Reason step by step, and put the final answer in \boxed{}."


@dataclass(frozen=True, kw_only=True)
class CompetitionMath(DataTask):
    r"""A response is right if its last `\boxed{...}` holds the answer in the sense of its judge.

    Rows have `problem` and `solution`; the gold answer is `answer` if the row has one, else the last box of the
    solution. `hub` is MATH to train on and MATH-500 held out.

    Attributes:
        judge: `own` (`same_answer`: strict, evaluates nothing) or `math-verify` (a package, see `judges`: lenient).
    """

    name = "math"
    summary = r"competition problems, the answer in \boxed{}; data=hub, a file, or sample (40 built-in items)"
    suits = "LM 1B"
    columns = ("problem", "solution")
    hub: ClassVar[dict[Split, HubSet]] = {
        "train": HubSet("DigitalLearningGmbH/MATH-lighteval", "default", "train"),
        "held_out": HubSet("HuggingFaceH4/MATH-500", "default", "test"),
    }
    judge: str = text(OWN, legal="own or math-verify")

    @property
    def max_response(self) -> int:
        """Room for a worked solution."""
        return 2048

    def __post_init__(self) -> None:
        """Complete the name of the judge with its version, which is part of the canonical name.

        Raises:
            UsageError: There is no such judge, or no such data.
        """
        super().__post_init__()
        object.__setattr__(self, "judge", full_name(self.judge))

    @staticmethod
    def read(row: Row) -> Item | None:
        """The problem with an instruction; the gold answer."""
        answer = row.get("answer") or last_boxed(str(row["solution"]))
        if not answer or not same_answer(str(answer), str(answer)):
            return None
        return Item(f"{row['problem']}\n{_INSTRUCTION}", str(answer), {"solution": str(row["solution"])})

    def score(self, item: Item, text: str) -> float:
        """1 if the last box holds the answer, else 0."""
        boxed = last_boxed(text)
        return float(boxed is not None and judge_named(self.judge)(item.answer, boxed))

    def demonstration(self, item: Item) -> str:
        """The worked solution of the data."""
        return str(item.meta["solution"])
