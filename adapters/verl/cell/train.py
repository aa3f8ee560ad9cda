"""The driver of a cell inside verl: `python -m vcpo_bench.adapters.verl.cell.train job.json`.

It writes the cell's data and configuration, starts verl here or as a Ray job, and turns its log and its checkpoints
into what `bench.trainers.job` promises.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from vcpo_bench.adapters.verl.cell.log import read_lines, record
from vcpo_bench.adapters.verl.cell.processes import VerlProcess, start
from vcpo_bench.adapters.verl.cell.prompts import write_prompts
from vcpo_bench.adapters.verl.cell.settings import CHECKPOINTS, METRICS, STEP_FOLDER, overrides, settings_of
from vcpo_bench.bench.cells.cell_store import CHECKPOINT
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_task
from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.bench.trainers.job import TABLES, Progress, TrainerJob, carry_out
from vcpo_bench.bench.training.build import build_recorder
from vcpo_bench.records import STEPS_FILE

POLL_SECONDS = 0.5
LATEST = "latest_checkpointed_iteration.txt"


def arguments(job: TrainerJob, folder: Path) -> list[str]:
    """What verl is told of a cell, as arguments of its command line."""
    task = bound_task(job)
    return overrides(settings_of(job, (task.prompt_length, task.max_response), folder))


def bound_task(job: TrainerJob) -> BoundTask:
    """The task of a job in the tokens of its model."""
    task = open_task(CellConfig.recorded(job.config), Path(job.model))
    assert isinstance(task, BoundTask)
    return task


class VerlFollower:
    """Turns what verl leaves into tables, checkpoints and progress.

    Attributes:
        recorder: The tables so far.
    """

    def __init__(self, job: TrainerJob, folder: Path) -> None:
        self._job, self._folder, self._config = job, folder, CellConfig.recorded(job.config)
        self.recorder = build_recorder(self._config)
        if job.resume:
            self.recorder.read(Path(job.resume))
        self._offset = self._checkpoint = 0

    @property
    def status(self) -> str:
        """How the cell has ended; empty: it has not."""
        return self.recorder.status(self._job.updates)

    def look(self) -> None:
        """Take over what is new."""
        lines, self._offset = read_lines(self._folder / METRICS, self._offset)
        for step, row in lines:
            record(self.recorder, self._config, step, row)
            self._take_checkpoint(step)
        if lines:
            self.tell()

    def _take_checkpoint(self, step: int) -> None:
        """Take over the checkpoint of a step; verl writes the line of the step after it."""
        verl = self._folder / CHECKPOINTS
        written = verl / f"{STEP_FOLDER}{step}"
        if self.status or not written.exists() or int((verl / LATEST).read_text()) < step:
            return
        taken = self._folder / f"{CHECKPOINT}{step}"
        taken.mkdir()
        self.recorder.write(taken)
        written.rename(taken / written.name)
        self._checkpoint = step

    def tell(self, status: str = "") -> None:
        """Say how far the cell is.

        Args:
            status: How it has ended, once its tables are whole; empty: it has not.
        """
        steps, done = self.recorder.tables[STEPS_FILE], self.recorder.updates
        newest = steps.row(-1) if done else {}
        Progress(
            step=done,
            reward=_number(newest.get("batch_reward"), 0.0),
            ess=_number(newest.get("ess_ratio"), 1.0),
            checkpoint=self._checkpoint,
            status=status,
        ).write(self._folder)


def _number(found: object, otherwise: float) -> float:
    return found if isinstance(found, float) else otherwise


def train(job_file: Path) -> None:
    """Train the cell of a job to its end, and leave its tables beside the file.

    Raises:
        RuntimeError: verl ended before.
    """
    job, folder = TrainerJob.read(job_file), job_file.parent
    config, task = CellConfig.recorded(job.config), bound_task(job)
    batches = job.updates + config.staleness
    write_prompts(task, config.seed, config.prompts, batches, config.eval_prompts, folder)
    follower = VerlFollower(job, folder)
    with start(config, job.key, arguments(job, folder)) as verl:
        _follow(verl, follower)
    if not follower.status:
        raise RuntimeError(f"verl ended after {follower.recorder.updates} of {job.updates} updates ({verl.ending})")
    (folder / TABLES).mkdir(exist_ok=True)
    follower.recorder.write(folder / TABLES)
    follower.tell(follower.status)


def _follow(verl: VerlProcess, follower: VerlFollower) -> None:
    while not follower.status:
        ended = verl.ended()
        follower.look()
        if ended:
            return
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    carry_out(train, Path(sys.argv[1]).resolve())
