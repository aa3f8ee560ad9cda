"""A recorded run done again up to some update: exact, since runs are deterministic, and checked against the record."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from torch import Tensor

from vcpo_bench.bench.cells import flag_values as options
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid_spec import start_digest
from vcpo_bench.bench.cells.model_source import recorded_model
from vcpo_bench.bench.cells.opening import longest_response
from vcpo_bench.bench.cells.plugin_files import plugins_of
from vcpo_bench.bench.cells.results_folder import read_json
from vcpo_bench.bench.regimes import REGIMES, CellShape
from vcpo_bench.bench.regimes.base import StalenessSchedule
from vcpo_bench.bench.samplers.catalog import SAMPLERS
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import parse_method
from vcpo_bench.records import CELL_FILE, PARTIAL_SUFFIX, RULES_VERSION, STEPS_FILE

ORIGINS = "origins"
"""Folder of a results folder with the states that its forked cells begin from."""
_COMPARED = ("batch_reward", "grad_norm", "step_scale")


@dataclass(frozen=True, slots=True)
class RecordedCell:
    """A cell that has ended and can be done again.

    Attributes:
        folder: Its folder.
        key: Its key.
        config: What was run.
        updates: Updates it made.
        start: File with the start policy, or folder of the language model; None: what ships with the task.
        device: Where to compute; empty: what its configuration says.
    """

    folder: Path
    key: str
    config: CellConfig
    updates: int
    start: Path | None
    device: str = ""

    @property
    def results(self) -> Path:
        """Its results folder."""
        return self.folder.resolve().parents[1]

    @property
    def schedule(self) -> StalenessSchedule:
        """When its data were sampled, and which update consumed them."""
        config = self.config
        shape = CellShape(config.seed, config.prompts, config.responses, longest_response(config))
        return REGIMES.parse(config.regime).schedule(config.staleness, shape)

    def check(self, step: int) -> None:
        """Refuse an update that the run never reached.

        Raises:
            UsageError: It lies beyond the end, or before the fork of a forked cell.
        """
        if not 0 <= step <= self.updates:
            raise UsageError(f"--at {step}: {self.key} made {self.updates} updates; choose 0 to {self.updates}")
        if step < self.config.fork_step:
            raise UsageError(
                f"--at {step}: {self.key} was forked at {self.config.fork_step}; before that it is {self.config.parent}"
            )


def read_cell(folder: Path, start: Path | None = None, model: str = "", device: str = "") -> RecordedCell:
    """Read what was run, and refuse what cannot be done again.

    Args:
        folder: Folder of an ended cell.
        start: File with the start policy, where the run had one of its own.
        model: Folder or name of the language model that the run began with, where it trained one.
        device: Where to compute, of the kind that the run had; empty: that kind.

    Raises:
        UsageError: There is no ended cell, it is damaged, the code has changed since, a real clock or an inference
            engine decided its batches, or its start policy, language model or kind of device is not at hand.
    """
    if not (folder / CELL_FILE).is_file():
        raise UsageError(f"{folder}: {_nothing_there(folder)}")
    try:
        facts = read_json(folder / CELL_FILE)
        config = CellConfig(**facts["config"])
        key, updates = str(facts["key"]), int(facts["steps_done"])
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        raise UsageError(f"{folder}: {CELL_FILE} is damaged; run the grid again to replace the cell") from error
    if facts.get("rules_version") != RULES_VERSION:
        raise UsageError(
            f"{key}: ran under rules {facts.get('rules_version')}, not {RULES_VERSION}; run it again first"
        )
    method = parse_method(config.method)
    if method.version != facts.get("method_version"):
        raise UsageError(f"{key}: the code of {config.method} has changed since; run it again first")
    if plugins_of(config) != config.plugins:
        raise UsageError(f"{key}: a plug-in of this cell has changed since; run it again first")
    if not REGIMES.parse(config.regime).deterministic:
        raise UsageError(
            f"{key}: a real clock decided which data each update got, so the run cannot be done again; "
            "use one with async(clock=virtual)"
        )
    if not SAMPLERS.parse(config.sampler).exact:
        raise UsageError(
            f"{key}: {config.sampler} sampled it, whose bits depend on what else it has in flight, so the run cannot "
            "be done again; use one sampled by torch"
        )
    if config.series:
        raise UsageError(f"{key}: it borrows the step scales of another cell; choose that one or an ordinary one")
    begun = _language_model(key, config, start, model) if config.model else _start_policy(key, config, start, model)
    return RecordedCell(folder, key, config, updates, begun, _device(key, config.device, device))


def _language_model(key: str, config: CellConfig, start: Path | None, model: str) -> Path:
    if start:
        raise UsageError(f"--start {start}: {key} trained a language model, which begins as --model is; leave it out")
    return recorded_model(key, config.model, model)


def _start_policy(key: str, config: CellConfig, start: Path | None, model: str) -> Path | None:
    if model:
        raise UsageError(f"--model {model}: {key} trained the embedded policy; leave it out")
    if (start_digest(start) if start else "") != config.start:
        had = "a start policy of its own; give its file with --start" if config.start else "the task's own start policy"
        raise UsageError(f"{key}: it had {had}" + (f", not {start}" if start else ""))
    return start


def _device(key: str, trained: str, asked: str) -> str:
    """Where to compute: only the kind of device that a run had gives its bits again."""
    chosen = options.device(asked or trained)
    if chosen.partition(":")[0] != trained:
        raise UsageError(f"--device {asked}: {key} ran on {trained}, and {asked} computes other bits; leave it out")
    if trained == "cuda" and (torch.device(chosen).index or 0) >= (there := torch.cuda.device_count()):
        raise UsageError(
            f"{key}: ran on cuda, and this machine has {there} CUDA devices; do it again where there is one"
        )
    return chosen


def _nothing_there(folder: Path) -> str:
    if folder.name.endswith(PARTIAL_SUFFIX) or folder.with_name(folder.name + PARTIAL_SUFFIX).is_dir():
        return "this cell has not ended; run its grid to the end first"
    known = [path.name for path in folder.parent.glob("*") if (path / CELL_FILE).is_file()]
    close = get_close_matches(folder.name, known, n=1)
    hint = f"did you mean {folder.parent / close[0]}?" if close else "name a folder such as results/NAME/cells/KEY"
    return f"no ended cell there; {hint}"


class Replay:
    """A recorded run in progress again.

    Args:
        cell: The run.
        earliest: First update whose weights are wanted: begins at the nearest checkpoint that is not later.

    Attributes:
        trainer: Its state now.
        began: Update it was taken up at; 0 is the start.
        snapshots: Trained weights by version, of those asked for, in main memory.
    """

    def __init__(self, cell: RecordedCell, earliest: int) -> None:
        self.cell = cell
        self.snapshots: dict[int, dict[str, Tensor]] = {}
        self.trainer = self._take_up(earliest)
        self.began = self.trainer.step

    def _take_up(self, earliest: int) -> Trainer:
        for checkpoint in self._checkpoints(earliest):
            trainer = self._trainer()
            try:
                trainer.load(checkpoint)
            except (OSError, ValueError, KeyError, RuntimeError, SafetensorError):
                trainer.close()
                continue
            return trainer
        if self.cell.config.parent:
            raise UsageError(f"{self.cell.key}: its fork state is gone from {self.cell.results / ORIGINS}; fork again")
        return self._trainer()

    def _trainer(self) -> Trainer:
        return build_trainer(self.cell.config, start=self.cell.start, device=self.cell.device)

    def _checkpoints(self, earliest: int) -> list[Path]:
        kept = [p for p in (self.cell.folder / "checkpoints").glob("[0-9]*") if int(p.name) <= earliest]
        origin = origin_folder(self.cell.results, self.cell.config.parent, self.cell.config.fork_step)
        return sorted(kept, reverse=True) + ([origin] if self.cell.config.parent else [])

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
        """First update at which this is not, bit for bit, what was recorded; None where it is throughout."""
        recorded = pq.read_table(self.cell.folder / STEPS_FILE, columns=list(_COMPARED)).to_pydict()
        again = self.trainer.recorder.tables[STEPS_FILE].columns
        upto = self.trainer.step
        different = np.zeros(upto, dtype=bool)
        for name in _COMPARED:
            pair = [np.array(values[:upto], dtype=np.float64) for values in (recorded[name], again[name])]
            different |= ~((pair[0] == pair[1]) | (np.isnan(pair[0]) & np.isnan(pair[1])))
        return int(different.argmax()) if different.any() else None

    def summary(self) -> str:
        """What was done, in a line."""
        source = "its start" if self.began == 0 else f"the checkpoint at {self.began}"
        line = f"{self.cell.key}: {self.trainer.step - self.began} updates replayed from {source}"
        differs = self.divergence()
        if differs is None:
            return f"{line}, equal to the record bit for bit"
        return f"{line}; warning: from update {differs} on this machine computes other bits than the record holds"


def origin_folder(results: Path, parent: str, step: int) -> Path:
    """Where a results folder keeps the state in which `parent` was forked at `step`."""
    return results / ORIGINS / f"{parent}-{step:08d}"


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute as workers do: with several threads the bits are others."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
