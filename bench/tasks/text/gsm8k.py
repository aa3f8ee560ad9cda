"""gsm8k: grade-school word problems with whole-number answers after `####` (Cobbe et al. 2021)."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from vcpo_bench.bench.tasks.text.base import Item, Split
from vcpo_bench.bench.tasks.text.items.data_task import DataTask
from vcpo_bench.bench.tasks.text.items.rows import HubSet, Row

TAIL = 300
"""Characters at the end of a response in which the answer must stand (as in veRL)."""

_INSTRUCTION = 'Reason step by step, and write the final answer after "####".'
_MARKED = re.compile(
    r"####[ \t]*(?:(-)\$?|\$(-)?)?(\d{1,3}(?:,\d{3})+|\d{1,40})(\.\d{1,40})?(?![\d/^*]|[.,eE]\d)", re.ASCII
)


def marked_number(text: str) -> Decimal | None:
    """The number after the last `####` that has one, within the last 300 characters; None if there is none.

    Thousands commas, a dollar sign, a full stop, a unit and zeros after the point change nothing; a ratio, a power
    or a badly grouped comma (`1,23`) is no number.
    """
    found = list(_MARKED.finditer(text[-TAIL:]))
    if not found:
        return None
    before, after, whole, fraction = found[-1].groups()
    value = Decimal(whole.replace(",", "") + (fraction or ""))
    return -value if before or after else value


@dataclass(frozen=True, kw_only=True)
class Gsm8k(DataTask):
    """A response is right if the number after its last `####` equals the one after the `####` of the answer.

    Rows have `question` and `answer`; `hub` is openai/gsm8k.
    """

    name = "gsm8k"
    summary = "grade-school word problems, the answer after ####; data=hub, a file, or sample (40 built-in items)"
    suits = "LM 1B"
    columns = ("question", "answer")
    hub: ClassVar[dict[Split, HubSet]] = {
        "train": HubSet("openai/gsm8k", "main", "train"),
        "held_out": HubSet("openai/gsm8k", "main", "test"),
    }

    @property
    def max_response(self) -> int:
        """Room for a worked solution."""
        return 2048

    @staticmethod
    def read(row: Row) -> Item | None:
        """The question with an instruction; the gold number after `####`."""
        value = marked_number(str(row["answer"]))
        if value is None:
            return None
        return Item(f"{row['question']}\n{_INSTRUCTION}", str(value), {"solution": str(row["answer"])})

    def score(self, item: Item, text: str) -> float:
        """1 if the marked number has the gold value, else 0."""
        value = marked_number(text)
        return float(value is not None and value == Decimal(item.answer))

    def demonstration(self, item: Item) -> str:
        """The worked solution of the data."""
        return str(item.meta["solution"])
