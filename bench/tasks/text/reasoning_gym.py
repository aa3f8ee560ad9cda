"""reasoning-gym: any of its procedural data sets as a task (optional package `reasoning-gym`)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from vcpo_bench.bench.tasks.text.base import Item
from vcpo_bench.bench.tasks.text.items.generated import GeneratedTask
from vcpo_bench.bench.tasks.text.items.item_stream import ItemStream
from vcpo_bench.bench.tasks.text.scoring.boxed import last_tagged
from vcpo_bench.bench.tasks.text.scoring.confined import confined_judge
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.entries import one_line
from vcpo_bench.naming.parameters import integer, text

_INSTRUCTION = "Think first, then give the answer alone between <answer> and </answer>."
_SEEDS = 2**31


@dataclass(frozen=True, kw_only=True)
class ReasoningGym(GeneratedTask):
    """Items and scores of one data set of reasoning-gym.

    Its scorers give partial credit (0.01 for a wrong answer, more for a near one), which would change every group
    advantage: here only a full score counts, as 1. Several of them evaluate the answer as code, so all of them run in
    a process that can only compute (`scoring.confined`); what it prevents or stops, and an exception, count as 0.

    Attributes:
        dataset: Name of the data set, such as `leg_counting`.
        level: Level of the data set's curriculum, 1 the easiest, at most its highest; 0: its default configuration.
    """

    name = "reasoning-gym"
    summary = "any data set of the optional package reasoning-gym, such as dataset=leg_counting"
    suits = "LM 1B"
    dataset: str = text("leg_counting", legal="the name of one of its data sets")
    level: int = integer(0, minimum=0, maximum=99)

    @property
    def max_response(self) -> int:
        """Room to think and for an answer in tags."""
        return 1024

    def __post_init__(self) -> None:
        """Refuse a data set that is not there.

        Raises:
            UsageError: The package is missing or has no such data set.
        """
        super().__post_init__()
        if self.dataset not in self._gym.factory.DATASETS:
            raise UsageError(f"reasoning-gym: no data set {self.dataset!r}; see reasoning_gym.factory.DATASETS")

    @cached_property
    def _gym(self) -> Any:
        try:
            import reasoning_gym
        except ImportError as error:
            raise UsageError("reasoning-gym: needs the package (pip install reasoning-gym)") from error
        return reasoning_gym

    @cached_property
    def _settings(self) -> dict[str, Any]:
        """What the level sets in the configuration of the data set."""
        if not self.level:
            return {}
        try:
            curriculum = self._gym.factory.create_curriculum(self.dataset)
            curriculum.set_global_level(self.level - 1)
            return {**vars(curriculum.generate_configuration()), "size": 1}
        except ValueError as error:
            raise UsageError(f"reasoning-gym: {self.dataset} has no levels ({one_line(error)}); drop level") from error

    def draw(self, stream: ItemStream) -> Item:
        """The first entry of a data set with a seed of the item's own.

        Raises:
            UsageError: The package cannot generate it (`composite` has no default configuration), or has no levels.
        """
        settings = {"size": 1, **self._settings, "seed": stream.below(_SEEDS)}
        try:
            entry: dict[str, Any] = self._gym.create_dataset(self.dataset, **settings)[0]
        except Exception as error:  # whatever another package's generator raises
            raise UsageError(f"reasoning-gym: {self.dataset} cannot be generated ({one_line(error)})") from error
        return Item(f"{entry['question']}\n{_INSTRUCTION}", str(entry["answer"]), {"entry": entry})

    def score(self, item: Item, text: str) -> float:
        """1 if the data set's own scorer gives a full score, else 0."""
        answer = last_tagged(text)
        if answer is None:
            return 0.0
        return float(confined_judge("reasoning-gym", self.dataset).right(answer.strip(), item.meta["entry"]))

    def demonstration(self, item: Item) -> str:
        """The data set's answer in tags."""
        return f"<answer>{item.answer}</answer>"
