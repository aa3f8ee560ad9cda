"""A grid: the product of what the command line lists, plus the controls that make it interpretable."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vcpo_bench.bench.cells import flag_values as options
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.model_source import LanguageModel
from vcpo_bench.bench.cells.plugin_files import plugins_of
from vcpo_bench.bench.policies.tiny.warm_start import read_warm_start
from vcpo_bench.bench.regimes import REGIMES, CellShape, Regime, check_method
from vcpo_bench.bench.tasks import token_task
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import method_names, parse_method
from vcpo_bench.records import Level

CONTROL_METHOD = "reinforce"


@dataclass(frozen=True, slots=True)
class GridSpec:
    """What was asked for; every list is an axis.

    Attributes:
        methods: Method expressions; `all` stands for every registered method that every regime can serve.
        staleness: Lags k in optimizer updates.
        seeds: Seeds.
        tasks: Task expressions.
        lrs: Learning rates.
        regimes: Regime expressions.
        steps: Updates per cell.
        prompts: Prompts per update.
        responses: Responses per prompt.
        record: Record level.
        controls: Add `reinforce` at each lag and one synchronous run per seed.
        start: File with the start policy; None: the one that ships with each task.
        stop: What ends a cell early (`CellConfig.stop`); cells whose step scales others borrow are never stopped.
        model: The language model to train instead of embedded policies.
        device: `cpu`, `cuda` or `cuda:N`.
        weight_decay: Of AdamW.
    """

    methods: Sequence[str]
    staleness: Sequence[int]
    seeds: Sequence[int]
    tasks: Sequence[str] = ("chain",)
    lrs: Sequence[float] = (3e-4,)
    regimes: Sequence[str] = ("fifo",)
    steps: int = 300
    prompts: int = 16
    responses: int = 8
    record: Level = "basic"
    controls: bool = True
    start: Path | None = None
    stop: str = ""
    model: LanguageModel | None = None
    device: str = "cpu"
    weight_decay: float = 0.0

    def task(self, expression: str) -> tuple[str, int]:
        """Canonical expression and longest response of one of the tasks."""
        if self.model:
            return self.model.task(expression)
        task = token_task(expression)
        return task.canonical, task.max_response


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """A cell of a grid.

    Attributes:
        config: What is run.
        key: Its key, the name of its folder.
        control: Whether it is there for comparison only.
        cost: Relative cost.
        updates: Optimizer updates of the run, with those that fill the pipeline before the budget counts.
        start: File of the start policy, or folder of the language model; None: the policy that ships with the task.
        origin: Folder with the state it begins from, for a fork; None: the start policy.
        device: Where it computes; empty: what its configuration says.
    """

    config: CellConfig
    key: str
    control: bool
    cost: float
    updates: int
    start: Path | None = None
    origin: Path | None = None
    device: str = ""


def plan_grid(spec: GridSpec) -> list[PlannedCell]:
    """The cells of a grid, longest first, each once.

    Raises:
        UsageError: A list is empty, a value is out of range, a task or regime is unknown, or they do not fit the lag.
        vcpo_bench.methods.ExpressionError: A method expression cannot be read.
    """
    _check(spec)
    for text in spec.tasks if spec.start else ():
        read_warm_start(token_task(text), spec.start)
    methods = list(dict.fromkeys(parse_method(text).canonical for text in _named(spec)))
    tasks = list(dict.fromkeys(spec.task(text)[0] for text in spec.tasks))
    lags = list(dict.fromkeys(spec.staleness))
    wanted = [(m, k, False) for m in methods for k in lags]
    if spec.controls:
        wanted += [(CONTROL_METHOD, k, True) for k in lags if CONTROL_METHOD not in methods]
        if 0 not in lags or CONTROL_METHOD not in methods:
            wanted.append((CONTROL_METHOD, 0, True))
    planned: dict[str, PlannedCell] = {}
    regimes = [REGIMES.parse(text) for text in spec.regimes]
    for asked, regime, task, lr, seed in itertools.product(wanted, regimes, tasks, spec.lrs, spec.seeds):
        for cell in _plan_cell(spec, *asked, regime, task, lr, seed):
            known = planned.get(cell.key)
            planned[cell.key] = cell if known is None or known.control else known
    return sorted(planned.values(), key=lambda cell: -cell.cost)


def _named(spec: GridSpec) -> Iterator[str]:
    """The method expressions, with `all` written out."""
    for text in spec.methods:
        if text == "all":
            yield from (name for name in method_names() if not _unserved(name, spec))
        else:
            yield text


def _unserved(name: str, spec: GridSpec) -> bool:
    """Whether some cell of the grid cannot run this method."""
    try:
        for regime, lag, task in itertools.product(spec.regimes, spec.staleness, spec.tasks):
            for _ in _plan_cell(spec, name, lag, False, REGIMES.parse(regime), task, 3e-4, 0):
                pass
    except UsageError:
        return True
    return False


def skipped_methods(spec: GridSpec) -> list[str]:
    """The registered methods that `all` leaves out because a regime of the grid cannot serve them."""
    return [name for name in method_names() if _unserved(name, spec)] if "all" in spec.methods else []


def _plan_cell(
    spec: GridSpec, method: str, lag: int, control: bool, regime: Regime, task: str, lr: float, seed: int
) -> Iterator[PlannedCell]:
    """The cell, after the one whose step scales it borrows, if it does."""
    parsed = parse_method(method)
    shape = CellShape(seed, spec.prompts, spec.responses, spec.task(task)[1])
    schedule = regime.schedule(lag, shape)
    check_method(method, parsed.needs, schedule)
    series = ""
    if parsed.needs_series:
        for donor in _plan_cell(replace(spec, stop=""), parsed.needs_series, lag, True, regime, task, lr, seed):
            yield donor
            series = donor.key
    config = CellConfig(
        method=method,
        staleness=lag,
        seed=seed,
        task=task,
        regime=regime.at(lag).text(),
        lr=lr,
        steps=spec.steps,
        prompts=spec.prompts,
        responses=spec.responses,
        record=spec.record,
        series=series,
        start=start_digest(spec.start) if spec.start else "",
        stop=spec.stop,
        device=spec.device.partition(":")[0],
        weight_decay=spec.weight_decay,
        **(spec.model.fields() if spec.model else {}),
    )
    config = config.model_copy(update={"plugins": plugins_of(config)})
    per_update = 1.4 if "score_norm_sq" in parsed.needs else 1.0
    updates = schedule.updates(spec.steps)
    cost = spec.prompts * spec.responses * (updates * per_update + 0.3 * lag)
    start = spec.model.folder if spec.model else spec.start
    yield PlannedCell(config, config.key(parsed.version), control, cost, updates, start, device=spec.device)


def start_digest(path: Path) -> str:
    """What a cell's configuration says of a file with a start policy.

    Raises:
        UsageError: The file cannot be read.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:10]
    except OSError as error:
        raise UsageError(
            f"--start {path}: cannot be read ({error.strerror}); make one with vcpo-bench warmup"
        ) from error


def _check(spec: GridSpec) -> None:
    axes: Iterable[tuple[str, Sequence[object]]] = (
        ("--methods", spec.methods),
        ("--staleness", spec.staleness),
        ("--seeds", spec.seeds),
        ("--task", spec.tasks),
        ("--regime", spec.regimes),
        ("--lr", spec.lrs),
    )
    for flag, values in axes:
        if not values:
            raise UsageError(f"{flag}: the list is empty; give at least one value")
    for flag, value in (("--steps", spec.steps), ("--prompts", spec.prompts), ("--responses", spec.responses)):
        if value < 1:
            raise UsageError(f"{flag} {value}: must be at least 1")
    if not 0 <= spec.weight_decay < math.inf:
        raise UsageError(f"--weight-decay {spec.weight_decay:g}: give a number, 0 or more")
    options.device(spec.device)
    if spec.model and spec.start:
        raise UsageError(f"--start {spec.start}: belongs to embedded policies; a language model starts as --model is")


def lag_warnings(spec: GridSpec) -> list[str]:
    """One line for each lag that is legal but probably not meant."""
    return [
        f"--staleness {lag} is at least --steps {spec.steps}: every update consumes data of the start policy"
        for lag in spec.staleness
        if lag >= spec.steps
    ]
