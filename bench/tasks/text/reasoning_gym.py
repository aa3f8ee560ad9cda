"""reasoning-gym: any of its procedural data sets as a task (optional package `reasoning-gym`)."""

from collections.abc import Mapping
from typing import Any, ClassVar

from vcpo_bench.bench.tasks.text.base import Item, Setting
from vcpo_bench.bench.tasks.text.items.generated import GeneratedTask
from vcpo_bench.bench.tasks.text.items.item_stream import Draws
from vcpo_bench.bench.tasks.text.scoring.boxed import last_tagged
from vcpo_bench.errors import UsageError

_INSTRUCTION = "Think first, then give the answer alone between <answer> and </answer>."
_SEEDS = 2**31


class ReasoningGym(GeneratedTask):
    """Items and scores of one data set of reasoning-gym, at its default configuration.

    Its scorers give partial credit (0.01 for a wrong answer, more for a near one), which would change every group
    advantage: here only a full score counts, as 1. They are the package's, so this project vouches neither for their
    time nor for what they do with the text; what they raise counts as 0.

    Args:
        dataset: Name of the data set, such as `leg_counting`.

    Raises:
        UsageError: The package is missing or has no such data set.
    """

    name = "reasoning-gym"
    summary = "any data set of the optional package reasoning-gym, such as dataset=leg_counting"
    parameters: ClassVar[Mapping[str, Setting]] = {"dataset": "leg_counting"}
    max_response = 1024

    def __init__(self, dataset: str = "leg_counting") -> None:
        try:
            import reasoning_gym
        except ImportError as error:
            raise UsageError("reasoning-gym: needs the package (pip install reasoning-gym)") from error
        self.dataset = dataset
        self._gym = reasoning_gym
        if dataset not in reasoning_gym.factory.DATASETS:
            raise UsageError(f"reasoning-gym(dataset={dataset}): no such data set; see reasoning_gym.factory.DATASETS")
        self._scorer = reasoning_gym.create_dataset(dataset, size=1, seed=0)

    def draw(self, draws: Draws) -> Item:
        """The first entry of a data set with a seed of the item's own."""
        entry: dict[str, Any] = self._gym.create_dataset(self.dataset, size=1, seed=draws.below(_SEEDS))[0]
        return Item(f"{entry['question']}\n{_INSTRUCTION}", str(entry["answer"]), {"entry": entry})

    def score(self, item: Item, text: str) -> float:
        """1 if the data set's own scorer gives full marks, else 0."""
        answer = last_tagged(text)
        if answer is None:
            return 0.0
        try:
            return float(self._scorer.score_answer(answer.strip(), item.meta["entry"]) >= 1)
        except Exception:  # a scorer that chokes on what a model wrote
            return 0.0

    def demonstration(self, item: Item) -> str:
        """The data set's answer in tags."""
        return f"<answer>{item.answer}</answer>"
