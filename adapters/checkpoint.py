"""What of a method must outlive the process: its state, the queue of samples, and where in the data it is."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from vcpo_bench.errors import UsageError

FORMAT = 1


def path_in(checkpoint: str | Path, rank: int) -> Path:
    """Where one rank's file lies in a checkpoint's folder."""
    return Path(checkpoint) / f"vcpo_bench_rank{rank}.pt"


def write(checkpoint: str | Path, rank: int, content: Mapping[str, Any]) -> None:
    """Save tensors and plain values of one rank; the file appears whole or not at all."""
    path = path_in(checkpoint, rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".partial")
    torch.save({"format": FORMAT, **content}, temporary)
    temporary.replace(path)


def read(checkpoint: str | Path, rank: int) -> dict[str, Any]:
    """What `write` saved; code in the file is never run.

    Raises:
        UsageError: The file is missing, damaged, or of a later version.
    """
    path = path_in(checkpoint, rank)
    if not path.is_file():
        raise UsageError(
            f"{path} is missing: the checkpoint was written by another trainer, or with fewer processes; resume with "
            "as many processes and the same method, or start from its weights without resuming"
        )
    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise UsageError(f"{path} cannot be read ({str(error).splitlines()[0]}): use an earlier checkpoint") from None
    if content["format"] != FORMAT:
        raise UsageError(f"{path} has format {content['format']}; this version of vcpo-bench reads {FORMAT}")
    return content


def check_lag(saved: int, wanted: int) -> None:
    """Refuse to go on with another lag.

    Raises:
        UsageError: They differ.
    """
    if saved != wanted:
        raise UsageError(f"the checkpoint was written with lag fifo({saved}), this run uses fifo({wanted})")


def on_device(samples: Mapping[str, Any], device: Any) -> dict[str, Any]:
    """The samples with their tensors on this device."""
    return {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in samples.items()}
