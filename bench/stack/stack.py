"""Many cells in training at once: each keeps its trainer, source, tables and state; the heavy work is one product."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

from torch import Tensor

from vcpo_bench.bench.feeding.source import PlannedSource, StepInput
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.stack.learner import StackedLearner
from vcpo_bench.bench.stack.network import StackedNetwork
from vcpo_bench.bench.stack.sampling import sample
from vcpo_bench.bench.stack.weights import StackedWeights
from vcpo_bench.bench.training.evaluation import judge, questions
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.bench.trajectories import Rollout


class PreparedEngine:
    """An `Engine` of one cell of a stack: its responses come from the product of all cells."""

    def __init__(self) -> None:
        self._ready: deque[tuple[Tensor, Rollout]] = deque()

    def prepare(self, uniforms: Tensor, rollout: Rollout) -> None:
        """Hand this rollout out when the cell asks for responses drawn with these numbers."""
        self._ready.append((uniforms, rollout))

    def generate(self, prompts: Tensor, uniforms: Tensor, eos: int | None) -> Rollout:
        """See `Engine`.

        Raises:
            AssertionError: The cell asks for something else than was prepared.
        """
        noise, rollout = self._ready.popleft()
        if noise is not uniforms:
            raise AssertionError("a cell asked for other responses than its stack has drawn for it")
        return rollout

    def set_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Nothing to do: the stack draws under the learner's own weights."""

    def health(self) -> str:
        """Nothing can go wrong with it."""
        return ""

    def close(self) -> None:
        """It holds nothing to release."""


class Advanced(NamedTuple):
    """What an update of one cell gave.

    Attributes:
        reward: The sampled reward.
        ess: The raw ESS ratio of its batch.
        problem: What ends the cell with an error; None: nothing does.
    """

    reward: float = 0.0
    ess: float = 0.0
    problem: Exception | None = None


class Stack:
    """Trainers of cells of one shape (`eligible.shape_of`), advanced together.

    A cell never sees the others. Cells may be at different updates, so each may come from a checkpoint of its own.

    Args:
        trainers: The trainers, at their starts or loaded from checkpoints. While they are in a stack, only the stack
            advances them; saving is theirs.
    """

    def __init__(self, trainers: Sequence[Trainer]) -> None:
        self.trainers = list(trainers)
        self.task = trainers[0].task
        self._policies = [_tiny(trainer) for trainer in trainers]
        self._sources = [_planned(trainer) for trainer in trainers]
        self._engines = [PreparedEngine() for _ in trainers]
        for source, engine in zip(self._sources, self._engines, strict=True):
            source.generator.published.sampler = engine
        self.weights = StackedWeights(self._policies)
        self.learner = StackedLearner([trainer.learner for trainer in trainers], self.weights)
        self._asked = questions(self.task, trainers[0].config.eval_prompts)

    def advance(self) -> list[Advanced]:
        """One update of every cell: sample, consume, update, record; and evaluations where they are due."""
        self._evaluate([cell for cell, trainer in enumerate(self.trainers) if trainer.step == 0])
        given = self._next_batches()
        nows = [trainer.step for trainer in self.trainers]
        done = self.learner.update([each.batch for each in given], nows)
        found = []
        for trainer, each, outcome in zip(self.trainers, given, done, strict=True):
            if isinstance(outcome, Exception):
                found.append(Advanced(problem=outcome))
                continue
            try:
                found.append(Advanced(each.sampled_reward, trainer.record(each, outcome)))
            except Exception as problem:  # of an observer, say: its cell ends, the others go on
                found.append(Advanced(problem=problem))
        well = [cell for cell, each in enumerate(found) if each.problem is None]
        self._evaluate([cell for cell in well if self.trainers[cell].evaluation_due])
        return found

    def _next_batches(self) -> list[StepInput]:
        """Draw what every cell is about to consume, then let it."""
        began = perf_counter()
        wanted = [source.begin(trainer.step) for source, trainer in zip(self._sources, self.trainers, strict=True)]
        for turn in range(max(map(len, wanted))):
            cells = [cell for cell, drafts in enumerate(wanted) if len(drafts) > turn]
            drafts = [wanted[cell][turn] for cell in cells]
            drawn = self._draw(cells, [draft.asked for draft in drafts])
            for cell, draft, rollout in zip(cells, drafts, drawn, strict=True):
                self._engines[cell].prepare(draft.asked.uniforms, rollout)
        given = [source.next_batch(trainer.step) for source, trainer in zip(self._sources, self.trainers, strict=True)]
        seconds = (perf_counter() - began) / len(given)
        return [replace(each, seconds_sample=seconds) for each in given]

    def _draw(self, cells: Sequence[int], asked: Sequence[Draw]) -> list[Rollout]:
        """Rollouts of some cells under their weights.

        On a CPU a policy drops rows that have ended from its products, which rounds otherwise than keeping them, so
        responses that can end are drawn cell by cell there.
        """
        if self.task.eos is not None and self.weights.device.type == "cpu":
            return [self._policies[cell].sample(own) for cell, own in zip(cells, asked, strict=True)]
        return sample(StackedNetwork(self.weights.config, self.weights.chosen(cells)), asked)

    def _evaluate(self, cells: Sequence[int]) -> None:
        """Evaluate the policies of some cells; the questions are the same for all."""
        if not cells:
            return
        began = perf_counter()
        found = [judge(self.task, self._asked, rollout) for rollout in self._draw(cells, [self._asked] * len(cells))]
        seconds = (perf_counter() - began) / len(cells)
        for cell, evaluation in zip(cells, found, strict=True):
            trainer = self.trainers[cell]
            trainer.recorder.evaluation(trainer.step, evaluation, seconds)


def _tiny(trainer: Trainer) -> TinyPolicy:
    assert isinstance(trainer.policy, TinyPolicy), "only built-in tiny policies are stacked"
    return trainer.policy


def _planned(trainer: Trainer) -> PlannedSource:
    assert isinstance(trainer.source, PlannedSource), "only planned schedules are stacked"
    return trainer.source
