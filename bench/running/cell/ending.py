"""What a cell leaves: checkpoints, its results, or what is recorded of one that failed, and its `cell.json`."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import torch

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.error_text import without_paths
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.provenance import gpu, provenance
from vcpo_bench.bench.training.build import build_recorder
from vcpo_bench.bench.training.step_recorder import MAX_SKIPPED, StepRecorder
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.checksums import write_sealed
from vcpo_bench.files.claims import ClaimHistory, ClaimLostError
from vcpo_bench.files.disk_space import full_disks_named
from vcpo_bench.naming.plugins import fault_of_plugin
from vcpo_bench.records import CELL_FILE, RULES_VERSION, STEPS_FILE


class EndedRun(NamedTuple):
    """What remains of a cell that another trainer has brought to its end; names are those of `Trainer`."""

    status: str
    step: int
    stopped: str
    recorder: StepRecorder


def save_checkpoint(cell: PlannedCell, trainer: Trainer, folder: Path) -> None:
    """Write a checkpoint that others can read too: `cell.json` in it says which cell it is of."""
    describe_checkpoint(cell, trainer.step, trainer.recorder, folder)
    trainer.save(folder)


def describe_checkpoint(cell: PlannedCell, step: int, recorder: StepRecorder, folder: Path) -> None:
    """Write the `cell.json` of a checkpoint after `step` updates."""
    write_sealed(folder / CELL_FILE, _facts(cell, step, recorder.seconds()), cover=False)


def finish(cell: PlannedCell, store: CellStore, run: Trainer | EndedRun, warned: Sequence[str] = ()) -> tuple[str, str]:
    """Write the results of a cell whose trainer has come to its end; its status and the reason for it.

    Raises:
        ClaimLostError: Another process has taken the cell over.
    """
    status = run.status
    reason = run.stopped if status == "stopped_by" else _not_finite(run.recorder) if status == "nan" else ""
    _write(cell, store, run.recorder, run.step, status, reason, None, warnings=list(warned))
    return status, reason


def finish_failed(
    cell: PlannedCell, store: CellStore, problem: Exception, warned: Sequence[str] = ()
) -> tuple[str, str]:
    """Write what is recorded of a cell that `problem` has ended; its status and the reason for it.

    Raises:
        ClaimLostError: Another process has taken the cell over.
    """
    store.check()  # without the claim, files may have gone: that is no error of the cell
    trace = "".join(traceback.format_exception(problem))
    error = without_paths(trace + (_remedy(problem, cell.config) or fault_of_plugin(problem)))
    reason = error.strip().splitlines()[-1]
    _write(cell, store, *_recorded(cell, store), "error", reason, error, warnings=list(warned))
    return "error", reason


def _write(
    cell: PlannedCell,
    store: CellStore,
    recorder: StepRecorder,
    steps_done: int,
    status: str,
    reason: str,
    error: str | None,
    **more: object,
) -> None:
    facts = _facts(cell, steps_done, recorder.seconds()) | {"status": status, "reason": reason, "error": error}
    facts |= {"ended": datetime.now(UTC).isoformat(timespec="seconds"), **more}
    with store.finish(failed=status == "error") as folder:
        recorder.write(folder)
        write_sealed(folder / CELL_FILE, facts)


def record_failure(
    cell: PlannedCell,
    cells_folder: Path,
    reason: str,
    traceback_text: str,
    job: str = "",
    watch: ClaimHistory | None = None,
) -> bool:
    """End a cell that no worker can run: status `error`, with the tables up to its latest checkpoint.

    Args:
        cell: The cell.
        cells_folder: `cells` of the results folder.
        reason: Why, in one line.
        traceback_text: What the last worker raised; may be empty.
        job: The scheduler's job that had the cell, and has gone; empty: none.
        watch: What earlier tries have seen of the claim on the cell, which is then not waited for; None: it is.

    Returns:
        Whether it has ended now; False: another worker has taken it over.

    Raises:
        ClaimHeldError: Another worker may have the cell, and `watch` is given.
        DiskFullError: There is no space left.
    """
    store = CellStore(cells_folder, cell.key)
    error = without_paths(f"{traceback_text}{reason}\n")
    lost = suppress(ClaimLostError)  # whoever took the cell over ends it
    with full_disks_named(cells_folder), lost, store.open(job=job, watch=watch):
        _write(cell, store, *_recorded(cell, store), "error", reason, error)
        return True
    return False


def _recorded(cell: PlannedCell, store: CellStore) -> tuple[StepRecorder, int]:
    """Tables of a failed cell up to its last readable checkpoint, and the number of updates in them."""
    recorder = build_recorder(cell.config)
    checkpoint = store.latest_checkpoint()
    if checkpoint:
        try:
            recorder.read(checkpoint)
        except (OSError, DamagedResultError):
            return build_recorder(cell.config), 0
    return recorder, recorder.updates


def _facts(cell: PlannedCell, steps_done: int, seconds: float) -> dict[str, Any]:
    return {
        "key": cell.key,
        "config": cell.config.values(),
        "control": cell.control,
        "steps_done": steps_done,
        "rules_version": RULES_VERSION,
        "method_version": cell.config.parts.method.version,
        "seconds": seconds,
        "provenance": provenance() | gpu(cell.device or cell.config.device),
    }


def _remedy(problem: Exception, config: CellConfig) -> str:
    """Advice after an out-of-memory error, as the last line of the error; else empty."""
    if not isinstance(problem, torch.OutOfMemoryError):
        return ""
    if not config.model:
        return f"{type(problem).__name__}: the GPU is full: use fewer --jobs per GPU, or --device cpu\n"
    limit = f"below {config.micro_tokens}" if config.micro_tokens else "16384 (cuts the batch into passes)"
    more = [] if config.checkpointing else ["--checkpointing"]
    more += [] if config.lora else ["--lora 16"]
    text = ", ".join([f"--micro-tokens {limit}", *more])
    return f"{type(problem).__name__}: the GPU is full: try {text}, or --sampler 'torch(slots=32)'\n"


def _not_finite(recorder: StepRecorder) -> str:
    what = dict.fromkeys(recorder.tables[STEPS_FILE].columns["nonfinite"][-MAX_SKIPPED:])
    return f"three updates in a row were skipped: {', '.join(map(str, what))} not finite"
