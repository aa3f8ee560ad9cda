"""What a grid is asked to contain: axes, and the settings that all its cells share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vcpo_bench.bench.cells import flag_values
from vcpo_bench.bench.cells.model_source import is_new, model_folder, model_identity
from vcpo_bench.bench.cells.parts import SharedParts
from vcpo_bench.bench.regimes import REGIMES, Regime
from vcpo_bench.bench.tasks import token_task
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.errors import UsageError
from vcpo_bench.records.settings import SETTINGS, CellFields, CellSettings


@dataclass(frozen=True)
class GridSpec:
    """A grid: every list is an axis, and `settings` holds what all cells share.

    Attributes:
        methods: Method expressions; `all` stands for every registered method that all regimes support.
        staleness: Lags k, in optimizer updates.
        seeds: Seeds.
        tasks: Task expressions.
        lrs: Learning rates.
        regimes: Regime expressions.
        settings: Settings of every cell. Cells whose step scales others borrow have no `stop`.
        controls: Whether to add `reinforce` at each lag and one synchronous run per seed.
        start: File with the start policy; None: the one that ships with each task.
        model: Language model to train, a folder or a name on the hub; empty: the built-in tiny policy.
        device: `cpu`, `cuda` or `cuda:N`.
    """

    methods: Sequence[str]
    staleness: Sequence[int]
    seeds: Sequence[int]
    tasks: Sequence[str] = (CellFields.task,)
    lrs: Sequence[float] = (CellFields.lr,)
    regimes: Sequence[str] = (CellFields.regime,)
    settings: CellSettings = CellSettings()  # noqa: RUF009 - immutable
    controls: bool = True
    start: Path | None = None
    model: str = ""
    device: str = CellFields.device

    @cached_property
    def parts(self) -> SharedParts:
        """What the settings name, as objects."""
        return SharedParts(self.settings)

    @cached_property
    def parsed_regimes(self) -> list[Regime]:
        """The regimes.

        Raises:
            UsageError: One cannot be read.
        """
        return [REGIMES.parse(text) for text in self.regimes]

    @property
    def start_path(self) -> Path | None:
        """File of the start policy, or folder of the language model, downloaded first if necessary."""
        return model_folder(self.model) if self.model else self.start

    def task(self, expression: str) -> tuple[str, int]:
        """Canonical expression and longest response, in tokens, of one of the tasks.

        Raises:
            UsageError: The task is unknown, needs a language model, or cannot use one.
        """
        if self.model:
            text = text_task(expression)
            return text.canonical, self.settings.max_response or text.max_response
        task = token_task(expression)
        return task.canonical, task.max_response

    def shared(self) -> dict[str, Any]:
        """The fields of `CellConfig` that are the same in all cells.

        Raises:
            UsageError: The start, the policy, the language model, the optimizer or the sampler cannot be used.
        """
        parts = self.parts
        return self.settings.values() | {
            "optimizer": parts.optimizer.text(),
            "policy": parts.policy.text(),
            "sampler": parts.sampler.text(),
            "trainer": parts.trainer.text(),
            "start": start_digest(self.start) if self.start else "",
            "model": model_identity(self.model) if self.model else "",
            "device": self.device.partition(":")[0],
        }

    def check(self) -> None:
        """Refuse what cannot be planned.

        Raises:
            UsageError: An axis is empty, there is no such device, or options do not fit together.
        """
        axes: Iterable[tuple[str, Sequence[object]]] = (
            ("--methods", self.methods),
            ("--staleness", self.staleness),
            ("--seeds", self.seeds),
            ("--task", self.tasks),
            ("--regime", self.regimes),
            ("--lr", self.lrs),
        )
        for flag, values in axes:
            if not values:
                raise UsageError(f"{flag}: the list is empty; give at least one value")
        flag_values.device(self.device)
        if self.model and self.start:
            raise UsageError(
                f"--start {self.start}: applies only to the built-in tiny policy; with --model, training starts from "
                "that model's weights. Drop --start."
            )
        policy = self.parts.policy.text()
        if self.model and policy != CellSettings.policy:
            raise UsageError(f"--policy {policy}: a built-in policy, and --model names another; drop one of them")
        for name in () if self.model else self.settings.changed_for_language_models():
            if name != "sampler" or self.parts.sampler.for_language_models:
                raise UsageError(f"{SETTINGS[name].flag}: applies only to language models; add --model, or drop it")
        for text in self.tasks if self.model else ():  # before a model is fetched
            self.task(text)

    def warnings(self) -> list[str]:
        """One line for each setting that is legal but probably not meant."""
        steps = self.settings.steps
        found = [
            f"--staleness {lag} is at least --steps {steps}: every update consumes data of the start policy; raise "
            f"--steps above {lag}, or drop that lag"
            for lag in self.staleness
            if lag >= steps
        ]
        if self.model and not self.settings.lora and not is_new(self.model):
            found += [
                f"--lr {lr:g}: from 1e-4 up, a pretrained model that is trained as a whole usually breaks; "
                f"{SETTINGS['lr'].with_model:g} is usual"
                for lr in self.lrs
                if lr >= 1e-4
            ]
        if self.settings.responses == 1:
            found.append(
                "--responses 1: a single response equals the mean of its group, so methods with a group baseline learn "
                "nothing; use at least 2"
            )
        return found


def start_digest(path: Path) -> str:
    """What a cell's configuration says of the file with a start policy: ten hex digits of its hash.

    Raises:
        UsageError: The file cannot be read.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:10]
    except OSError as error:
        raise UsageError(
            f"--start {path}: cannot be read ({error.strerror}); make one with vcpo-bench lab warmup"
        ) from error
