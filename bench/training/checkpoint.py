"""The state of a cell in training on disk: tensors, scalars, whose they are, and checksums of all of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shutil import copymode
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.checksums import verify_sealed, write_sealed
from vcpo_bench.files.regular import check_regular
from vcpo_bench.records import STATE_FILE

TENSORS_FILE = "state.safetensors"


def write_state(folder: Path, key: str, tensors: Mapping[str, Tensor], scalars: Mapping[str, Any]) -> None:
    """Write a state into a folder whose tables are there already, and seal the folder.

    Args:
        folder: Folder of the checkpoint.
        key: Key of the cell.
        tensors: By name, on any device.
        scalars: JSON values.
    """
    save_file({name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, folder / TENSORS_FILE)
    write_sealed(folder / STATE_FILE, {**scalars, "key": key})
    copymode(folder / STATE_FILE, folder / TENSORS_FILE)  # safetensors hides its files from everyone else


def read_state(folder: Path, config: CellConfig, key: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The scalars and tensors of a checkpoint of this cell, or of the one that it was forked from.

    Raises:
        DamagedResultError: It is damaged, or is of another cell.
        OSError: The disk cannot be read at the moment.
    """
    scalars = verify_sealed(folder / STATE_FILE)
    forked = bool(config.parent) and scalars.get("step") == config.fork_step
    owners = {key, config.parent} if forked else {key}
    if scalars.get("key") not in owners:
        raise DamagedResultError(f"is a checkpoint of {scalars.get('key')}, not of {key}", folder)
    try:
        check_regular(folder / TENSORS_FILE)  # a stranger's seal need not cover it
        # cloned: a tensor inside the file's buffer is aligned differently, and BLAS then sums in another order
        tensors = {name: tensor.clone() for name, tensor in load_file(folder / TENSORS_FILE).items()}
    except (SafetensorError, FileNotFoundError) as error:
        raise DamagedResultError(f"cannot be read ({error})", folder / TENSORS_FILE) from error
    return scalars, tensors
