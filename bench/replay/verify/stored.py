"""What a recorded run kept: weights by version, and the responses that waited to be trained on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from vcpo_bench.bench.cells.cell_store import KEPT, numbered
from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.feeding.source import under
from vcpo_bench.bench.replay.recorded_cell import RecordedCell
from vcpo_bench.bench.training.checkpoint import read_state
from vcpo_bench.bench.trajectories import Responses, Trajectories
from vcpo_bench.errors import UsageError


@dataclass(frozen=True, slots=True)
class Recorded:
    """Responses that declare a version, one row each.

    Attributes:
        given: The responses, with a prompt for each; the mask is True at tokens that the policy drew.
        reported: float32 [B, T] log-probabilities.
        counted: bool [B, T], tokens that declare it.
    """

    given: Responses
    reported: Tensor
    counted: Tensor

    def first(self, count: int) -> Recorded:
        """The first rows."""
        return Recorded(self.given.take(slice(count)), self.reported[:count], self.counted[:count])


class StoredRun:
    """A recorded cell with kept checkpoints.

    Attributes:
        cell: The cell.
        task: Its task.
        versions: Versions whose weights are known: that of the start policy, and those of the checkpoints.

    Raises:
        UsageError: It kept no checkpoints.
    """

    def __init__(self, cell: RecordedCell) -> None:
        self.cell, self.task = cell, open_task(cell.config, cell.start)
        self._folders = numbered(cell.folder / KEPT)
        if not self._folders:
            raise UsageError(f"{cell.key}: kept no weights of earlier versions; run it with --keep-checkpoints every=1")
        first = [] if cell.config.parent else [0]
        self.versions = sorted({*first, *self._folders})
        self.state = lru_cache(maxsize=16)(self._state)

    def _state(self, version: int) -> dict[str, Tensor]:
        """Trained weights of a version.

        Raises:
            DamagedResultError: The checkpoint is damaged.
        """
        if version not in self._folders:
            start = open_policy(self.cell.config, self.task, self.cell.start)
            return {name: tensor.clone() for name, tensor in start.trained_state().items()}
        return under(self._tensors(version), "policy/")

    def _tensors(self, version: int) -> dict[str, Tensor]:
        return read_state(self._folders[version], self.cell.config, self.cell.key)[1]

    def near(self, version: int, count: int) -> list[int]:
        """Other stored versions, the nearest first."""
        return sorted(set(self.versions) - {version}, key=lambda other: (abs(other - version), other))[:count]

    def declared(self, mixed: bool) -> dict[int, Recorded]:
        """Every response that waited or was in flight at a checkpoint, by the stored version it declares; each once.

        Args:
            mixed: Include trajectories whose tokens declare several versions.
        """
        known: dict[str, _Rows] = {}
        for version in self._folders:
            known |= self._waiting(under(self._tensors(version), "source/"))
        for queued in [name for name in known if name.startswith("queue/")]:
            known.pop(queued.replace("queue/", "draft/"), None)  # the same responses when they were in flight
        found: dict[int, list[Recorded]] = {}
        for name in sorted(known, key=lambda name: int(name.split("/")[1])):
            for version, rows in _by_version(known[name], mixed):
                found.setdefault(version, []).append(rows)
        return {version: _joined(found[version]) for version in self.versions if version in found}

    def _waiting(self, source: dict[str, Tensor]) -> dict[str, _Rows]:
        found = {}
        for name in {name.rsplit("/", 1)[0] for name in source if name.startswith(("queue/", "group/", "draft/"))}:
            kind, index = name.split("/")
            tensors = under(source, f"{name}/")
            if kind != "draft":
                batch = Trajectories(0, **tensors)
                found[name] = _Rows(batch.flat().each, batch.behavior_logp.flatten(0, 1), batch.version.flatten(0, 1))
                continue
            rows, version = len(tensors["responses"]), tensors["version"]
            config = self.cell.config
            prompts = self.task.training_prompts(config.seed, int(index), rows // config.responses)
            mask = tensors["mask"] & (version >= 0)  # the rest is not drawn yet
            given = Responses(prompts, tensors["responses"], mask, tensors.get("kept"))
            found[name] = _Rows(given.each, tensors["logp"], version)
        return found


class _Rows(NamedTuple):
    """Responses as a checkpoint has them, [B, ...]; `version` int64 [B, T]."""

    given: Responses
    reported: Tensor
    version: Tensor


def _by_version(rows: _Rows, mixed: bool) -> list[tuple[int, Recorded]]:
    mask, version = rows.given.mask, rows.version
    oldest = torch.where(mask, version, torch.iinfo(torch.int64).max).amin(1)
    newest = torch.where(mask, version, -1).amax(1)
    found = []
    for each in torch.unique(version[mask]).tolist():
        counted = mask & (version == each)
        chosen = counted.any(1) & ((oldest == newest) | torch.tensor(mixed))
        if chosen.any():
            found.append((each, Recorded(rows.given.take(chosen), rows.reported[chosen], counted[chosen])))
    return found


def _joined(parts: list[Recorded]) -> Recorded:
    given = [part.given._asdict() for part in parts]
    joined = {n: torch.cat([each[n] for each in given]) for n, tensor in given[0].items() if tensor is not None}
    return Recorded(
        Responses(**joined), torch.cat([one.reported for one in parts]), torch.cat([one.counted for one in parts])
    )
