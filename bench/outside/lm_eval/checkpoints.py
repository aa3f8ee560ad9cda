"""Kept checkpoints of ended cells, and the weights in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open

from vcpo_bench.bench.cells.cell_store import KEPT, numbered
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.results_folder import ended_keys
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.trainers.catalog import OutsideTrainer
from vcpo_bench.bench.training.checkpoint import TENSORS_FILE
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files.checksums import verify_sealed
from vcpo_bench.files.regular import check_regular
from vcpo_bench.records import CELL_FILE, CELLS, STATE_FILE
from vcpo_bench.records.cell_file import read_cell_file

_PREFIX = "policy/"


@dataclass(frozen=True, slots=True)
class KeptCheckpoint:
    """A kept checkpoint of an ended cell."""

    results: Path
    key: str
    config: CellConfig
    step: int
    folder: Path


def find_checkpoints(places: Iterable[Path], which: str) -> list[KeptCheckpoint]:
    """Find kept checkpoints.

    Args:
        places: Folders of ended cells, or results folders for all their cells that kept checkpoints.
        which: `last`, `all` or a number of updates.

    Raises:
        UsageError: A folder is neither, a cell kept no checkpoint or not this one, or `which` cannot be read.
    """
    if which not in ("last", "all") and not which.isdecimal():
        raise UsageError(f"--checkpoint {which!r}: must be last, all, or a number of updates")
    found: list[KeptCheckpoint] = []
    for place in places:
        if (place / CELL_FILE).is_file():
            found += _chosen(place, which)
        elif (place / CELLS).is_dir():
            kept = [place / CELLS / key for key in sorted(ended_keys(place)) if _steps(place / CELLS / key)]
            if not kept:
                raise UsageError(f"{place}: none of its ended cells kept a checkpoint; {_REMEDY}")
            found += [checkpoint for cell in kept for checkpoint in _chosen(cell, which)]
        else:
            raise UsageError(f"{place}: neither an ended cell nor a results folder; cells are in RESULTS/{CELLS}/")
    return found


_REMEDY = "run them with --keep-checkpoints every=N, N a divisor of --steps, into a new folder"


def _steps(cell: Path) -> dict[int, Path]:
    return numbered(cell / KEPT)


def _chosen(cell: Path, which: str) -> list[KeptCheckpoint]:
    steps = _steps(cell)
    if not steps:
        raise UsageError(f"{cell}: no checkpoint was kept; {_REMEDY}")
    if which.isdecimal() and int(which) not in steps:
        raise UsageError(f"{cell}: no checkpoint after {which} updates; there are {', '.join(map(str, steps))}")
    wanted = list(steps) if which == "all" else [max(steps) if which == "last" else int(which)]
    try:
        config = CellConfig.recorded(read_cell_file(cell / CELL_FILE)["config"])
    except DamagedResultError:
        raise
    except ValueError as error:
        raise UsageError(f"{cell / CELL_FILE} is damaged or from another version; run the grid again") from error
    if isinstance(config.parts.trainer, OutsideTrainer):
        folder = steps[max(steps)]
        raise UsageError(
            f"{cell}: the checkpoints of {config.trainer} are models that transformers loads; run lm_eval --model hf "
            f"--model_args pretrained={folder}"
        )
    cell = cell.resolve()
    return [KeptCheckpoint(cell.parents[1], cell.name, config, step, steps[step].resolve()) for step in wanted]


def load_trained(checkpoint: KeptCheckpoint, policy: Policy) -> None:
    """Load the trained weights of a checkpoint into a policy.

    Raises:
        UsageError: The file is missing, damaged or from another policy.
    """
    path = checkpoint.folder / TENSORS_FILE
    try:
        verify_sealed(checkpoint.folder / STATE_FILE)
        check_regular(path)  # a stranger's seal need not cover it
        with safe_open(path, "pt") as file:
            names = [name for name in file.keys() if name.startswith(_PREFIX)]  # noqa: SIM118 - not a dict
            policy.load_trained({name.removeprefix(_PREFIX): file.get_tensor(name) for name in names})
    except (OSError, DamagedResultError, SafetensorError, RuntimeError, KeyError) as error:
        raise UsageError(f"{path} cannot be read ({str(error).splitlines()[0]}); score another checkpoint") from error
