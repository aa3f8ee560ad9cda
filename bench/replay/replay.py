"""Replay of a recorded run up to some update: exact, since runs are deterministic, and checked against the record."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from vcpo_bench.bench.cells.cell_store import KEPT, numbered
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.replay.recorded_cell import RecordedCell
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files.parquet import read_parquet
from vcpo_bench.records import ORIGINS_FOLDER, STEPS_FILE
from vcpo_bench.records.table_file import seal_beside

_COMPARED = ("batch_reward", "grad_norm", "step_scale")
DIFFERS = "differ from the record"
"""In the summary of a replay whose results are not those recorded."""


class Replay:
    """A recorded run, trained again up to some update.

    Args:
        cell: The recorded cell.
        earliest: First update whose weights are needed: the replay starts at the latest checkpoint up to there.

    Attributes:
        trainer: Trainer in its present state.
        began: Update at which the replay started; 0 is the start of the run.
        snapshots: Trained weights by version, of the versions asked for, in main memory.
    """

    def __init__(self, cell: RecordedCell, earliest: int) -> None:
        self.cell = cell
        self.snapshots: dict[int, dict[str, Tensor]] = {}
        self._passed: list[str] = []  # checkpoints that could not be used, and why
        self.trainer = self._resume(earliest)
        self.began = self.trainer.step

    def _resume(self, earliest: int) -> Trainer:
        for checkpoint in self._checkpoints(earliest):
            trainer = self._trainer()
            try:
                trainer.load(checkpoint)
            except DamagedResultError as problem:
                trainer.close()
                self._passed.append(f"{checkpoint.name} {problem.what}")
                continue
            return trainer
        if self.cell.config.parent:
            where = self.cell.results / ORIGINS_FOLDER
            raise UsageError(f"{self.cell.key}: its fork state is missing from {where}, or damaged; fork again")
        return self._trainer()

    def _trainer(self) -> Trainer:
        return build_trainer(self.cell.config, start=self.cell.start, device=self.cell.device)

    def _checkpoints(self, earliest: int) -> list[Path]:
        kept = [path for step, path in numbered(self.cell.folder / KEPT).items() if step <= earliest]
        origin = origin_folder(self.cell.results, self.cell.config.parent, self.cell.config.fork_step)
        return kept[::-1] + ([origin] if self.cell.config.parent and origin.is_dir() else [])

    def to(self, step: int, keep: Collection[int] = ()) -> None:
        """Train until `step` updates are done; keep the weights of the versions in `keep` on the way."""
        while True:
            if self.trainer.step in keep and self.trainer.step not in self.snapshots:
                state = self.trainer.policy.trained_state()
                kept = {name: tensor.to("cpu", copy=True) for name, tensor in state.items()}
                self.snapshots[self.trainer.step] = kept
            if self.trainer.step >= step:
                return
            self.trainer.advance()

    def divergence(self) -> int | None:
        """First update that differs, in any bit, from what was recorded; None if none does.

        Raises:
            DamagedResultError: The record is damaged.
        """
        path = self.cell.folder / STEPS_FILE
        recorded = read_parquet(path, seal_beside(path), _COMPARED).to_pydict()
        again = self.trainer.recorder.tables[STEPS_FILE].columns
        upto = self.trainer.step
        different = np.zeros(upto, dtype=bool)
        for name in _COMPARED:
            pair = [np.array(values[:upto], dtype=np.float64) for values in (recorded[name], again[name])]
            different |= ~((pair[0] == pair[1]) | (np.isnan(pair[0]) & np.isnan(pair[1])))
        return int(different.argmax()) if different.any() else None

    def summary(self) -> str:
        """What was replayed and, where at least one update was, whether it is bit-identical to the record.

        Raises:
            DamagedResultError: The record is damaged.
        """
        source = "the start" if self.began == 0 else f"the checkpoint at {self.began}"
        count = self.trainer.step - self.began
        line = f"{self.cell.key}: {count} {'update' if count == 1 else 'updates'} replayed from {source}"
        line += "".join(f" (passed over: {text})" for text in self._passed)
        if not count:
            return f"{line}, so there is nothing to compare with the record"
        differs = self.divergence()
        if differs is None:
            return f"{line}, bit-identical to the record"
        return f"{line}; warning: from update {differs} on, this machine's results {DIFFERS}"


def origin_folder(results: Path, parent: str, step: int) -> Path:
    """Where a results folder keeps the state of `parent` after `step` updates, from which its forks start."""
    return results / ORIGINS_FOLDER / f"{parent}-{step:08d}"


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread, as workers do: more threads would change rounding."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def weights_of(policy: Policy, others: Mapping[str, Tensor]) -> Iterator[None]:
    """Give the policy other trained weights inside the block; frozen weights are never copied."""
    own = {name: tensor.to("cpu", copy=True) for name, tensor in policy.trained_state().items()}
    policy.load_trained(others)
    try:
        yield
    finally:
        policy.load_trained(own)
