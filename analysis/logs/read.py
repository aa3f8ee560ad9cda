"""`read_run`: the log of a run, in whatever format and under whatever names, as series under ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from vcpo_bench.analysis.logs.errors import NotYetError, SeveralRunsError, by_folder
from vcpo_bench.analysis.logs.find import LogFiles, find_sources
from vcpo_bench.analysis.logs.mapping import map_names, mapped_dumps
from vcpo_bench.analysis.logs.names import AUTO, STEP, check_wanted, find_framework, is_clock, is_known_anywhere
from vcpo_bench.analysis.logs.readers.console import read_console
from vcpo_bench.analysis.logs.readers.csv_table import read_csv
from vcpo_bench.analysis.logs.readers.jsonl import read_jsonl
from vcpo_bench.analysis.logs.readers.own_cells import read_cell
from vcpo_bench.analysis.logs.readers.stores import read_mlflow_metric, read_sqlite
from vcpo_bench.analysis.logs.readers.tensorboard import read_tensorboard
from vcpo_bench.analysis.logs.readers.token_dumps import read_dumps
from vcpo_bench.analysis.logs.readers.trainer_state import read_trainer_state
from vcpo_bench.analysis.logs.readers.wandb_offline import read_wandb
from vcpo_bench.analysis.logs.rows import LogRows, Resume
from vcpo_bench.analysis.logs.run import LoggedRun

_READERS = {
    "jsonl": read_jsonl,
    "trainer_state": read_trainer_state,
    "tensorboard": read_tensorboard,
    "wandb": read_wandb,
    "console": read_console,
}
OWN = "vcpo-bench"


def read_run(
    path: str | Path | Iterable[str | Path], framework: str = AUTO, mapping: Mapping[str, str] | None = None
) -> LoggedRun:
    """Read the log of one run.

    Args:
        path: A file or folder, or several that hold parts of the same run, the oldest first. `FILE::RUN` names a run of
            a trackio or mlflow database.
        framework: Who wrote it, a file of `frameworks/`; `"auto"`: found from the names in the log.
        mapping: Our column, or `step`, to a name in the log; it goes before the names of the framework.

    Raises:
        UsageError: Nothing can be read, it is not clear which run is meant, or nothing in it is known.
    """
    paths = [path] if isinstance(path, str | Path) else list(path)
    wanted = dict(mapping or {})
    check_wanted(framework, wanted)
    step = wanted.pop(STEP, "")
    mapped = set(wanted.values())
    rows = LogRows(keep=lambda name: name in mapped or is_known_anywhere(name), step=step)
    dumps, status = _read_parts(paths, rows)
    weights = LogRows(keep=lambda name: True)
    read_dumps(dumps, weights)
    _check(rows, weights, paths, {**wanted, STEP: step} if step else wanted)
    dump_series = mapped_dumps(weights)
    chosen = OWN if status and framework == AUTO else framework
    found = find_framework(chosen, rows.names, guess=not wanted and not dump_series)
    series, parts, overwritten, unused, step_name, notes = map_names(rows, found, wanted)
    for name, computed in dump_series.items():  # exact weights go before anything a tracker averaged
        if name != "reward" or "reward" not in series:
            series[name] = computed
    if not series:
        shown = ", ".join(list(rows.names)[:12])
        if wanted:
            mapped_as = ",".join(f"{column}={name}" for column, name in wanted.items())
            raise NotYetError(f"--map {mapped_as}: holds no number; write 0.5, not 0,5 or 50%")
        raise NotYetError(f"{framework} logs none of these: {shown}; leave out --framework, or add --map reward=KEY")
    return LoggedRun(
        path=", ".join(map(str, paths)),
        framework=found.name if found else "mapped",
        title=found.title if found else "names given with --map" if wanted else "token dumps",
        step_unit=found.step if found else "steps",
        step_name=step_name,
        series=series,
        unused=unused,
        resumes=_distinct(rows.resumes),
        overwritten=overwritten,
        status=status,
        notes=tuple(rows.notes + _damage(rows) + notes),
        parts=parts,
    )


def _read_parts(paths: Sequence[str | Path], rows: LogRows) -> tuple[list[Path], str]:
    """Read every path in order; the token dumps that were found, and the status of a cell of ours, else empty."""
    dumps: list[Path] = []
    status = ""
    for one in paths:
        sources, more, ignored = find_sources(Path(one))
        dumps += more
        part = LogRows(rows.keep, rows.step) if len(paths) > 1 else rows
        status = _read_sources(sources, part, Path(one)) or status
        if ignored and any(source.files for source in sources):
            part.notes.append(
                f"{_named(sources)} read; {', '.join(ignored)} files are there as well, and were not read"
            )
        if part is not rows:
            rows.absorb(part)
    return dumps, status


def _named(sources: Sequence[LogFiles]) -> str:
    """`a/log.txt was`, `a/log.txt and 3 more were`."""
    files = [file for source in sources for file in source.files]
    return f"{files[0]} and {len(files) - 1} more were" if len(files) > 1 else f"{files[0]} was"


def _read_sources(sources: list[LogFiles], rows: LogRows, root: Path) -> str:
    """Read the sources of one path; the status of a cell of ours, else empty."""
    if len(sources) == 1 and sources[0].kind == "cell":
        return read_cell(sources[0].files[0], rows)
    for number, source in enumerate(sources):
        part = LogRows(rows.keep, rows.step) if len(sources) > 1 else rows
        for file in source.files:
            _read_file(source, file, part)
        if part is rows:
            continue
        shared = set(part.kept()) & set(rows.kept())
        if number and not (all(map(is_clock, shared)) if _are_processes(sources) else not shared):
            raise SeveralRunsError(root, by_folder(root, [_place(root, one) for one in sources]))
        rows.absorb(part)
    return ""


def _are_processes(sources: Sequence[LogFiles]) -> bool:
    """Whether these are logs of the processes of one run, each of which may log the time of a step."""
    folders = {one.files[0].parent for one in sources}
    return len(folders) == 1 or {folder.name for folder in folders} <= {"trainer", "orchestrator"}


def _place(root: Path, source: LogFiles) -> Path:
    return source.files[0].parent if source.kind in ("tensorboard", "trainer_state") else source.files[0]


def _read_file(source: LogFiles, file: Path, rows: LogRows) -> None:
    if source.kind == "sqlite":
        read_sqlite(file, rows, source.run)
    elif source.kind == "csv":
        read_csv(file, rows, source.run)
    elif source.kind == "mlruns":
        parts = file.parts
        read_mlflow_metric(file, Path(*parts[: len(parts) - parts[::-1].index("metrics")]), rows)
    else:
        _READERS[source.kind](file, rows)


def _check(rows: LogRows, weights: LogRows, paths: list[str | Path], wanted: dict[str, str]) -> None:
    shown = ", ".join(map(str, paths))
    if not rows.names and not weights.names:
        raise NotYetError(f"{shown} holds no number; is it a log?")
    for column, name in wanted.items():
        if name not in rows.names:
            known = ", ".join(list(rows.names)[:20])
            raise NotYetError(f"--map {column}={name}: the log has no such name; it has {known}")


def _damage(rows: LogRows) -> list[str]:
    return [
        f"{count} line{'s' * (count > 1)} of {file} could not be read and {'were' if count > 1 else 'was'} left out"
        for file, count in rows.bad_lines.items()
    ]


def _distinct(resumes: list[Resume]) -> tuple[Resume, ...]:
    """The resumes in order, those that several names of one log show counted once."""
    seen = {(one.step, one.back_from): one for one in resumes}
    return tuple(sorted(seen.values(), key=lambda one: one.step))
