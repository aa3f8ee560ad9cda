r"""math: competition problems with an answer in `\boxed{}` (Hendrycks et al. 2021)."""

from collections.abc import Mapping
from typing import ClassVar

from vcpo_bench.bench.tasks.text.base import Item, Setting, Split
from vcpo_bench.bench.tasks.text.items.data_task import DataTask
from vcpo_bench.bench.tasks.text.items.rows import HubSet, Row
from vcpo_bench.bench.tasks.text.scoring.boxed import last_boxed
from vcpo_bench.bench.tasks.text.scoring.judges import OWN, judge_named
from vcpo_bench.bench.tasks.text.scoring.math_answers import same_answer

_INSTRUCTION = r"Reason step by step, and put the final answer in \boxed{}."


class CompetitionMath(DataTask):
    r"""A response is right if its last `\boxed{...}` holds the answer in the sense of its judge.

    Args:
        data: `hub` (MATH to train on, MATH-500 held out), `sample`, a file or a folder; rows have `problem` and
            `solution`; the gold answer is `answer` if the row has one, else the last box of the solution.
        test: A file of held-out rows.
        sha: A hash the items must have.
        judge: `own` (`same_answer`: strict, nothing is evaluated) or `math-verify` (a package, `judges`: lenient).
    """

    name = "math"
    summary = r"competition problems, the answer in \boxed{}; data=hub, a file, or sample (40 items of our own)"
    parameters: ClassVar[Mapping[str, Setting]] = {**DataTask.parameters, "judge": OWN}
    fields = ("problem", "solution")
    hub: ClassVar[dict[Split, HubSet]] = {
        "train": HubSet("DigitalLearningGmbH/MATH-lighteval", "default", "train"),
        "held_out": HubSet("HuggingFaceH4/MATH-500", "default", "test"),
    }
    max_response = 2048

    def __init__(self, data: str = "hub", test: str = "", sha: str = "", judge: str = OWN) -> None:
        self.judge, self._same = judge_named(judge)
        super().__init__(data, test, sha)

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
        return float(boxed is not None and self._same(item.answer, boxed))

    def demonstration(self, item: Item) -> str:
        """The worked solution of the data."""
        return str(item.meta["solution"])
