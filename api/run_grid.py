"""`vb.run`: the grid of `vcpo-bench run`, from a script or a notebook."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from vcpo_bench.analysis.monitoring.stop_on_alarm import StopOnAlarm
from vcpo_bench.api.tables import Tables, load
from vcpo_bench.bench.cells import flag_values
from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.running import run_grid
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.pool.stacks import check_stack
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.component import Component
from vcpo_bench.naming.grammar import closest
from vcpo_bench.naming.plugins import load_plugin
from vcpo_bench.records.setting import settings_of
from vcpo_bench.records.settings import CellFields, CellSettings, read_settings
from vcpo_bench.reports.terminal.live import make_view
from vcpo_bench.reports.terminal.plain_console import PlainConsole

_USUAL = {one.parameter: one.given_nothing for one in settings_of(CellSettings).values()}

Axis = str | float | Component | Sequence[str] | Sequence[int] | Sequence[float] | Sequence[Component]
"""Values of an axis: a list, one value, or text as the command line takes it, such as `"1,16"` or `"1-16"`."""


def run(
    methods: Axis = "vcpo,clip,vespo",
    staleness: Axis = "1,16,128",
    seeds: Axis = 6,
    *,
    task: Axis = CellFields.task,
    regime: Axis = CellFields.regime,
    lr: Axis = CellFields.lr,
    controls: bool = True,
    start: str | Path | None = None,
    model: str = "",
    device: str = CellFields.device,
    out: str | Path = "results/default",
    jobs: int = 0,
    stack: str | int = "auto",
    plugins: str | Path | Sequence[str | Path] = (),
    quiet: bool = False,
    **settings: Any,
) -> Tables:
    """Train every missing cell of a grid and read the results.

    The same call resumes what was stopped and trains only what is missing, with bit-identical results on a CPU. Cells
    train in processes of their own that import nothing of the calling script, so a script needs no
    `if __name__ == "__main__"`.

    Args:
        methods: Method expressions, such as `["vcpo", "clip(high=0.28)+ess"]`, or what `parse_method` makes of them.
        staleness: Policy lags, in optimizer updates.
        seeds: Number of seeds, or a list of them.
        task: Task expressions.
        regime: Regime expressions.
        lr: Learning rates.
        controls: Also run `reinforce` at every lag, and a synchronous run per seed.
        start: File of `vcpo-bench lab warmup`; None: the start policy that ships with each task.
        model: Language model to train; empty: the built-in tiny policy.
        device: `cpu`, `cuda` or `cuda:N`.
        out: Results folder.
        jobs: Worker processes; 0: one per CPU core or GPU.
        stack: Most cells trained as one stack: `auto`, `off` or a number.
        plugins: Python files, or one, with methods, tasks, regimes or samplers of your own.
        quiet: Show no progress.
        settings: What all cells share, named as the flags of `vcpo-bench run` with underscores: `steps`, `prompts`,
            `responses`, `record`, `weight_decay`, `dtype`, `lora`, ...

    Returns:
        The tables of `out`, those of earlier calls included. Cells that failed have the status `error`.

    Raises:
        UsageError: A value cannot be used, or another process is writing to `out`.
    """
    _check(settings)
    files = tuple(Path(file).resolve() for file in ([plugins] if isinstance(plugins, str | Path) else plugins))
    for file in files:
        load_plugin(file)
    spec = GridSpec(
        methods=flag_values.expressions(_text(methods)),
        staleness=flag_values.lags(_text(staleness)),
        seeds=flag_values.seeds(_text(seeds)),
        tasks=flag_values.expressions(_text(task)),
        lrs=flag_values.rates(_text(lr)),
        regimes=flag_values.expressions(_text(regime)),
        settings=read_settings(_USUAL | settings),
        controls=controls,
        start=None if start is None else Path(start),
        model=model,
        device=device,
    )
    workers = run_grid.worker_count(jobs, device, spec.parts.sampler)
    check_stack(str(stack))
    options = RunOptions(Path(out), workers, plugins=files, make_observer=StopOnAlarm, stack=str(stack))
    view = make_view(quiet, PlainConsole())
    try:
        with _script_kept_from_workers():
            run_grid.run_grid(plan_grid(spec), options, view)
    finally:
        view.close()
    return load(out)


def _text(values: Axis) -> str:
    """The values as the command line takes them; a trailing comma keeps a list of one a list."""
    if isinstance(values, str):
        return values
    if isinstance(values, Iterable):
        return ",".join(map(_spelled, values)) + ","
    return _spelled(values)


def _spelled(value: object) -> str:
    """One value: what a name was parsed to, text, or a number, also one of numpy."""
    return value.text() if isinstance(value, Component) else str(value)


def _check(settings: dict[str, Any]) -> None:
    """Refuse names that are no setting."""
    known = {one.parameter for one in settings_of(CellSettings).values()}
    for name in settings:
        if name not in known:
            raise UsageError(f"run({name}=...): no such setting{closest(name, known)}")


@contextmanager
def _script_kept_from_workers() -> Iterator[None]:
    """A spawned process would run the caller's script again, up to the call that spawned it."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script
