"""What the expressions of a cell name, as objects. They are read here and nowhere else, each once per cell."""

from __future__ import annotations

from functools import cached_property

from vcpo_bench.bench.optimizers.catalog import OPTIMIZERS, Optimizer
from vcpo_bench.bench.policies.catalog import POLICIES, EmbeddedPolicy
from vcpo_bench.bench.regimes import REGIMES, Regime
from vcpo_bench.bench.samplers.catalog import SAMPLERS, Sampler
from vcpo_bench.bench.tasks import TokenTask, token_task
from vcpo_bench.bench.tasks.text import TextTask, text_task
from vcpo_bench.bench.trainers.catalog import TRAINERS, CellTrainer
from vcpo_bench.methods import Method, parse_method
from vcpo_bench.records.settings import CellSettings


class SharedParts:
    """What the settings name that all cells of a grid share; each expression is read when it is first asked for.

    All parts are immutable, so that cells and runs may share them. What a run changes is made from them for each run:
    the optimizer's moments, a sampler's engine, the state of a method.

    Args:
        settings: The settings. Every attribute raises `UsageError` where its expression cannot be read.
    """

    def __init__(self, settings: CellSettings) -> None:
        self._settings = settings

    @cached_property
    def policy(self) -> EmbeddedPolicy:
        """The built-in policy; the default where a language model is trained."""
        return POLICIES.parse(self._settings.policy)

    @cached_property
    def optimizer(self) -> Optimizer:
        """What turns a gradient into a step."""
        return OPTIMIZERS.parse(self._settings.optimizer)

    @cached_property
    def sampler(self) -> Sampler:
        """How responses are drawn."""
        return SAMPLERS.parse(self._settings.sampler)

    @cached_property
    def trainer(self) -> CellTrainer:
        """What trains."""
        return TRAINERS.parse(self._settings.trainer)


class CellParts(SharedParts):
    """What all expressions of a cell name.

    Args:
        settings: Its settings. Every attribute raises `UsageError` where its expression cannot be read.
        method: Its method.
        task: Its task.
        regime: Its regime.
        model: The language model that is trained; empty: the built-in policy.
    """

    def __init__(self, settings: CellSettings, method: str, task: str, regime: str, model: str) -> None:
        super().__init__(settings)
        self._method, self._task, self._regime, self._model = method, task, regime, model

    @cached_property
    def method(self) -> Method:
        """The method."""
        return parse_method(self._method)

    @cached_property
    def task(self) -> TokenTask | TextTask:
        """The task: one in text for a language model, else one in tokens. `UsageError` also where it is the other."""
        return text_task(self._task) if self._model else token_task(self._task)

    @cached_property
    def regime(self) -> Regime:
        """How the lag comes about."""
        return REGIMES.parse(self._regime)
