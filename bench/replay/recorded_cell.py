"""A recorded cell that can be replayed: what it ran, and why some cells cannot be replayed exactly."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import torch

from vcpo_bench.bench.cells import flag_values as options
from vcpo_bench.bench.cells.config import CellConfig, plugins_of
from vcpo_bench.bench.cells.grid_spec import start_digest
from vcpo_bench.bench.cells.model_source import recorded_model
from vcpo_bench.bench.cells.opening import longest_response
from vcpo_bench.bench.regimes import CellShape
from vcpo_bench.bench.regimes.base import StalenessSchedule
from vcpo_bench.bench.trainers.catalog import OutsideTrainer
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.records import CELL_FILE, PARTIAL_SUFFIX, RULES_VERSION
from vcpo_bench.records.cell_file import read_cell_file


@dataclass(frozen=True, slots=True)
class RecordedCell:
    """A cell that has ended and can be replayed.

    Attributes:
        folder: Its folder.
        key: Its key.
        config: What was run.
        updates: Number of updates it made.
        start: File with the start policy, or folder of the language model; None: the one that ships with the task.
        device: Device to replay on; empty: the one in its configuration.
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
        """Schedule of its regime: when data were sampled, and which update consumed them."""
        config = self.config
        shape = CellShape(config.seed, config.prompts, config.responses, longest_response(config))
        return config.parts.regime.schedule(config.staleness, shape)

    def check(self, step: int) -> None:
        """Check that the run reached an update.

        Raises:
            UsageError: `step` is beyond the end, or before the fork of a forked cell.
        """
        if not 0 <= step <= self.updates:
            raise UsageError(f"--at {step}: {self.key} made {self.updates} updates; choose 0 to {self.updates}")
        if step < self.config.fork_step:
            raise UsageError(
                f"--at {step}: {self.key} was forked at {self.config.fork_step}; "
                f"its earlier updates are those of {self.config.parent}"
            )


def read_cell(
    folder: Path, start: Path | None = None, model: str = "", device: str = "", exactly: bool = True
) -> RecordedCell:
    """Read a recorded cell and check that it can be replayed.

    Args:
        folder: Folder of an ended cell.
        start: File with the start policy, if the run had its own.
        model: Folder or name of the language model that the run started from, if it trained one.
        device: Device to replay on, of the kind that the run used; empty: that kind.
        exactly: Refuse a cell whose batches depended on more than seeds and weights.

    Raises:
        UsageError: There is no ended cell, the code has changed since, a real clock or an inference engine decided its
            batches, or its start policy, language model or kind of device is not available.
        DamagedResultError: Its `cell.json` is damaged, or is that of another cell.
    """
    if not (folder / CELL_FILE).is_file():
        raise UsageError(f"{folder}: {_missing_cell(folder)}")
    try:
        facts = read_cell_file(folder / CELL_FILE)
        config = CellConfig.recorded(facts["config"])
        key, updates = facts["key"], int(facts["steps_done"])
    except DamagedResultError as error:
        raise DamagedResultError(f"{error.what}; run the grid again to replace it", folder / CELL_FILE) from error
    except (KeyError, TypeError, UsageError) as error:
        raise UsageError(f"{folder}: {CELL_FILE} is damaged; run the grid again to replace the cell") from error
    if facts.get("rules_version") != RULES_VERSION:
        raise UsageError(
            f"{key}: was run under rules {facts.get('rules_version')}, not {RULES_VERSION}; run it again first"
        )
    method = config.parts.method
    if method.version != facts.get("method_version"):
        raise UsageError(f"{key}: the code of {config.method} has changed since; run it again first")
    if plugins_of(config) != config.plugins:
        raise UsageError(f"{key}: a plug-in of this cell has changed since; run it again first")
    if exactly:
        _check_repeatable(key, config)
    origin = _language_model(key, config, start, model) if config.model else _start_policy(key, config, start, model)
    place = _device(key, config.device, device)
    if config.key(method.version) != key:
        raise UsageError(f"{key}: was run with settings that this version does not have; run it again first")
    return RecordedCell(folder, key, config, updates, origin, place)


def _check_repeatable(key: str, config: CellConfig) -> None:
    if isinstance(config.parts.trainer, OutsideTrainer):
        raise UsageError(f"{key}: was trained by {config.trainer}; only cells of --trainer own can be replayed")
    if not config.parts.regime.deterministic:
        raise UsageError(
            f"{key}: a real clock decided which data each update received, so this cell cannot be replayed exactly; "
            "choose one run with async(clock=virtual)"
        )
    if not config.parts.sampler.exact:
        raise UsageError(
            f"{key}: was sampled with {config.sampler}, whose outputs depend on batch composition, so it cannot be "
            "replayed exactly; choose a cell run with --sampler torch"
        )
    if config.series:
        raise UsageError(f"{key}: uses the step scales of another cell; choose that cell or an ordinary one")


def _language_model(key: str, config: CellConfig, start: Path | None, model: str) -> Path:
    if start:
        raise UsageError(f"--start {start}: {key} trained a language model, which starts from --model; drop --start")
    return recorded_model(key, config.model, model)


def _start_policy(key: str, config: CellConfig, start: Path | None, model: str) -> Path | None:
    if model:
        raise UsageError(f"--model {model}: {key} trained the built-in tiny policy; drop --model")
    if (start_digest(start) if start else "") != config.start:
        used = "its own start policy; give its file with --start" if config.start else "the task's default start policy"
        raise UsageError(f"{key}: was trained from {used}" + (f", not {start}" if start else ""))
    return start


def _device(key: str, trained: str, asked: str) -> str:
    """Device to replay on: only the kind of device that a run used reproduces it bit for bit."""
    chosen = options.device(asked or trained)
    if chosen.partition(":")[0] != trained:
        raise UsageError(
            f"--device {asked}: {key} was recorded on {trained} and cannot be replayed bit for bit on another kind of "
            "device; drop --device"
        )
    if trained == "cuda" and (torch.device(chosen).index or 0) >= (there := torch.cuda.device_count()):
        raise UsageError(
            f"{key}: was recorded on cuda, and this machine has {there} CUDA devices; replay it on a machine with one"
        )
    return chosen


def _missing_cell(folder: Path) -> str:
    if folder.name.endswith(PARTIAL_SUFFIX) or folder.with_name(folder.name + PARTIAL_SUFFIX).is_dir():
        return "this cell has not ended; finish its grid first"
    known = [path.name for path in folder.parent.glob("*") if (path / CELL_FILE).is_file()]
    close = get_close_matches(folder.name, known, n=1)
    hint = f"did you mean {folder.parent / close[0]}?" if close else "name a folder such as results/NAME/cells/KEY"
    return f"no ended cell there; {hint}"
