"""From a grid's specification to its cells: the product of the axes, plus the controls that make it interpretable."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vcpo_bench.bench.cells.config import CellConfig, plugins_of
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.policies.catalog import check_distributions
from vcpo_bench.bench.regimes import CellShape, Regime, check_method
from vcpo_bench.bench.regimes.checks import check_regime
from vcpo_bench.bench.regimes.plan import BrokenPromiseError
from vcpo_bench.bench.tasks import token_task
from vcpo_bench.bench.tasks.catalog import check_turns
from vcpo_bench.bench.tasks.checks import check_task
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Method, method_names, parse_method

CONTROL_METHOD = "reinforce"


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """A cell of a grid.

    Attributes:
        config: What is run.
        key: Its key, the name of its folder.
        control: Whether it is there only for comparison.
        cost: Relative cost.
        updates: Optimizer updates of the run, including those that fill the pipeline before the budget counts.
        start: File of the start policy, or folder of the language model; None: the policy that ships with the task.
        origin: Folder with the state it starts from, for a fork; None: the start policy.
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


@dataclass(frozen=True, slots=True)
class _Point:
    """One point of the product of the axes; the fields are those of `CellConfig`."""

    method: Method
    staleness: int
    control: bool
    regime: Regime
    task: str
    lr: float
    seed: int


def plan_grid(spec: GridSpec) -> list[PlannedCell]:
    """The cells of a grid, longest first, each once.

    Raises:
        UsageError: A list is empty, a value is out of range, a task or regime is unknown, or they do not fit the lag.
        vcpo_bench.methods.ExpressionError: A method expression cannot be read.
    """
    spec.check()
    _check_tasks(spec)
    _check_regimes(spec)
    shared = spec.shared()
    methods = list({method.canonical: method for method in _named_methods(spec, shared)}.values())
    planned: dict[str, PlannedCell] = {}
    for point in _points(spec, methods):
        for cell in _plan_cell(spec, shared, point):
            known = planned.get(cell.key)
            planned[cell.key] = cell if known is None or known.control else known
    return sorted(planned.values(), key=lambda cell: -cell.cost)


def _check_tasks(spec: GridSpec) -> None:
    """Raises `UsageError` where a task of a plug-in breaks a promise, or `--start` is no start of one of the tasks."""
    for task in () if spec.model else map(token_task, spec.tasks):
        if task.source:
            check_task(task)
        if spec.start:
            from vcpo_bench.bench.policies.warm_start import read_warm_start

            read_warm_start(task, spec.start, spec.parts.policy)


def _check_regimes(spec: GridSpec) -> None:
    """Raises `UsageError` where a regime of a plug-in breaks a promise at one of the lags."""
    sizes, tokens = spec.settings, max((spec.task(text)[1] for text in spec.tasks), default=1)
    for regime, lag in itertools.product(spec.parsed_regimes, spec.staleness):
        if regime.source:
            try:
                check_regime(regime, lag, CellShape(0, sizes.prompts, sizes.responses, tokens), sizes.steps)
            except BrokenPromiseError as broken:
                raise UsageError(f"--regime {regime.text()} at lag {lag}: {broken}") from None


def skipped_methods(spec: GridSpec) -> list[str]:
    """The registered methods that `all` leaves out because a regime or a policy of the grid does not support them."""
    if "all" not in spec.methods:
        return []
    shared = spec.shared()
    return [name for name in method_names() if not _is_supported(parse_method(name), spec, shared)]


def _named_methods(spec: GridSpec, shared: dict[str, Any]) -> Iterator[Method]:
    """The methods, with `all` written out."""
    for text in spec.methods:
        if text == "all":
            every = map(parse_method, method_names())
            yield from (method for method in every if _is_supported(method, spec, shared))
        else:
            yield parse_method(text)


def _is_supported(method: Method, spec: GridSpec, shared: dict[str, Any]) -> bool:
    """Whether every cell of the grid can run this method."""
    try:
        for point in _points(replace(spec, lrs=spec.lrs[:1], seeds=spec.seeds[:1], controls=False), [method]):
            for _ in _plan_cell(spec, shared, point):
                pass
    except UsageError:
        return False
    return True


def _points(spec: GridSpec, methods: list[Method]) -> Iterator[_Point]:
    """The product of the axes, and the controls; equal values of an axis count once."""
    tasks = list(dict.fromkeys(spec.task(text)[0] for text in spec.tasks))
    lags = list(dict.fromkeys(spec.staleness))
    wanted = [(method, lag, False) for method in methods for lag in lags]
    if spec.controls:
        control, named = parse_method(CONTROL_METHOD), {method.canonical for method in methods}
        wanted += [(control, lag, True) for lag in lags if control.canonical not in named]
        if 0 not in lags:
            wanted.append((control, 0, True))
    axes = (wanted, spec.parsed_regimes, tasks, spec.lrs, spec.seeds)
    for (method, lag, is_control), regime, task, lr, seed in itertools.product(*axes):
        yield _Point(method, lag, is_control, regime, task, lr, seed)


def _plan_cell(spec: GridSpec, shared: dict[str, Any], point: _Point) -> Iterator[PlannedCell]:
    """The cell of a point; before it the cell whose step scales it borrows, if there is one."""
    method, settings = point.method, spec.settings
    shape = CellShape(point.seed, settings.prompts, settings.responses, spec.task(point.task)[1])
    schedule = point.regime.schedule(point.staleness, shape)
    check_method(method.canonical, method.needs, schedule)
    series = ""
    if method.needs_series:
        lender = replace(point, method=parse_method(method.needs_series), control=True)
        for cell in _plan_cell(spec, shared | {"stop": ""}, lender):
            yield cell
            series = cell.key
    config = CellConfig(
        **shared,
        method=method.canonical,
        staleness=point.staleness,
        seed=point.seed,
        task=point.task,
        regime=point.regime.at(point.staleness).text(),
        lr=point.lr,
        series=series,
    )
    check_distributions(config.method, method.needs, config.model)
    check_turns(config.method, method.needs, config.parts.task)
    config.parts.trainer.refuse(config, method, config.parts.task)
    config = replace(config, plugins=plugins_of(config))
    per_update = 1.4 if "score_norm_sq" in method.needs else 1.0
    updates = schedule.updates(config.steps)
    cost = config.prompts * config.responses * (updates * per_update + 0.3 * config.staleness)
    yield PlannedCell(
        config, config.key(method.version), point.control, cost, updates, spec.start_path, device=spec.device
    )
