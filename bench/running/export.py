"""A grid as a folder that is carried to a cluster: its cells, a script that runs one, and what trainers are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.cell.train_outside import planned_job
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.run_grid import entered
from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
from vcpo_bench.bench.trainers.catalog import OutsideTrainer
from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import write_bytes
from vcpo_bench.files.folders import made

KEYS, SCRIPT, CONFIGURATIONS = "cells.txt", "run.sh", "configurations"
TEXT = """#!/bin/sh
# Runs one cell of this folder, or goes on with it: ./run.sh N [MODEL]
# N is a line of cells.txt. MODEL is the folder of the language model, where it is not that of the plan.
# As an array job of Slurm, from this folder: sbatch --array=1-{count} --nodes=1{gpus} run.sh
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$here/cells.txt" ] || here=$SLURM_SUBMIT_DIR  # Slurm runs a copy of this file
key=$(sed -n "${{1:-$SLURM_ARRAY_TASK_ID}}p" "$here/cells.txt")
exec vcpo-bench run-cell --out "$here" --key "$key" ${{2:+--model "$2"}}
"""


def export_grid(cells: Sequence[PlannedCell], options: RunOptions, say: Callable[[str], object]) -> int:
    """Write the missing cells of a grid into a folder; nothing is trained, and no trainer need be installed.

    Returns:
        How many were written.

    Raises:
        UsageError: The folder cannot be used, or a cell needs what does not travel with it.
        DiskFullError: There is no space left.
    """
    if options.plugins:
        raise UsageError("--export: plug-in files stay where they are; run the grid where they lie")
    if any(cell.config.series for cell in cells):
        raise UsageError("--export: a method that borrows step scales waits for another cell; leave it out")
    told = {cell.key: _configuration(cell, options.keep_every) for cell in cells}  # before anything is written
    with entered(cells, options, say) as (missing, how):
        LaunchFile(how.out.resolve()).add_cells(how.cell_jobs([(cell,) for cell in missing]))
        _write_scripts(missing, how.out)
        for cell in missing:
            if lines := told[cell.key]:
                path = made(how.out, CONFIGURATIONS) / f"{cell.key}.txt"
                write_bytes(path, "".join(f"{line}\n" for line in lines).encode())
    return len(missing)


def _configuration(cell: PlannedCell, keep_every: int) -> list[str]:
    trainer = cell.config.parts.trainer
    if not isinstance(trainer, OutsideTrainer):
        return []
    return trainer.configuration(planned_job(cell, keep_every), Path(cell.key))


def _write_scripts(cells: Sequence[PlannedCell], out: Path) -> None:
    needed = max((cell.config.parts.trainer.ranks for cell in cells if cell.config.device != "cpu"), default=0)
    gpus = f" --gpus-per-node={needed}" if needed else ""
    write_bytes(out / KEYS, "".join(f"{cell.key}\n" for cell in cells).encode())
    write_bytes(out / SCRIPT, TEXT.format(count=len(cells), gpus=gpus).encode())
    (out / SCRIPT).chmod(0o755)
