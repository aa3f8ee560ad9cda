"""A `GRPOTrainer` with a method that trains a cell and records it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import torch
from torch import Tensor

from vcpo_bench.adapters.trl import with_method
from vcpo_bench.adapters.trl.cell.cell_run import CellRun
from vcpo_bench.adapters.trl.cell.rows import Sampled
from vcpo_bench.adapters.trl.lag import Samples
from vcpo_bench.bench.cells.cell_store import CHECKPOINT
from vcpo_bench.bench.running.cell.run_cell import CheckpointPace
from vcpo_bench.bench.trainers.job import Progress
from vcpo_bench.bench.training.learner_settings import warmed

PLACE = "vcpo_bench_place"
"""Added to the samples: see `Sampled.place`."""


class CellTraining:
    """Stands before a trainer with a method: prompts and learning rates of a cell, and what its tables need.

    Class attributes:
        cell: The cell.
    """

    cell: ClassVar[CellRun]
    accelerator: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        parent: Any = super()
        parent.__init__(*args, **kwargs)
        self._seen = (torch.empty(0), torch.empty(0))
        self._norm = self._seconds_sample = self._seconds_score = self._decided = 0.0

    def _tokenize_prompts(self, prompts: Sequence[str]) -> tuple[list[list[int]], None, dict[str, Any]]:
        return [self.cell.prompts.tokens(text) for text in prompts], None, {}

    def get_decay_parameter_names(self, model: Any) -> list[str]:
        """All, as in the loop of this project."""
        return [name for name, _ in model.named_parameters()]

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """The learning rate rises over `lr_warmup` updates and then stays."""
        trainer: Any = self
        share = partial(warmed, 1.0, self.cell.config.lr_warmup)
        trainer.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer or trainer.optimizer, share)
        return trainer.lr_scheduler

    def _generate_and_score_completions(self, inputs: Any) -> Samples:
        parent: Any = super()
        trainer: Any = self
        began = perf_counter()
        samples: Samples = parent._generate_and_score_completions(inputs)
        first, group = len(inputs) * self.accelerator.process_index, trainer.num_generations
        place = [one["row"] * group + (first + index) % group for index, one in enumerate(inputs)]
        samples[PLACE] = torch.tensor(place, device=samples["prompt_ids"].device)
        self._seconds_sample += perf_counter() - began
        return samples

    def _decide(self, window: Sequence[Samples]) -> None:
        parent: Any = super()
        trainer: Any = self
        began = perf_counter()
        parent._decide(window)
        width, eos = trainer.max_completion_length, self.cell.task.eos
        tokens = [_padded(samples, width, eos) for samples in window]
        place = torch.cat([samples[PLACE] for samples in window])
        self._seen = self.accelerator.gather(place), self.accelerator.gather(torch.cat(tokens))
        self._decided = perf_counter()
        self._seconds_score = self._decided - began

    def _clip_grad_norm(self, model: Any) -> Any:
        """Clips; a gradient that is not finite is dropped, so that the step changes nothing."""
        parent: Any = super()
        norm = parent._clip_grad_norm(model)
        self._norm = float(norm)
        if not math.isfinite(self._norm):
            model.zero_grad(set_to_none=True)
        return norm

    def record(self) -> None:
        """Record the update that was just made."""
        trainer: Any = self
        seconds = self._seconds_sample, self._seconds_score, perf_counter() - self._decided
        sampled = Sampled(*self._seen, float(trainer._rewards.mean()), *seconds)
        self.cell.record(trainer.rows, trainer.decision, sampled, self._norm)
        self._seconds_sample = 0.0

    def evaluate_cell(self) -> None:
        """Evaluate, in every process: where weights are split, all must take part."""
        from trl.models.utils import unwrap_model_for_generation

        trainer: Any = self
        whole = unwrap_model_for_generation(trainer.model_wrapped, self.accelerator)
        with whole, trainer._dist.summon_full_params(trainer.model_wrapped, recurse=False), torch.no_grad():
            self.cell.evaluate()


class CellCallback:
    """Records, evaluates, saves and ends a cell."""

    def __init__(self, trainer: Any, folder: Path) -> None:
        self._trainer, self._folder, self._cell = trainer, folder, trainer.cell
        self._pace, self._writing, self._checkpoint = CheckpointPace(), ExitStack(), 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """The start policy is evaluated, too."""
        if not state.global_step:
            self._trainer.evaluate_cell()

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """After every update."""
        self._trainer.record()
        if self._cell.evaluation_due:
            self._trainer.evaluate_cell()
        control.should_training_stop = bool(self._cell.status)
        control.should_save = not self._cell.status and self._save_due()
        if control.should_save:
            self._writing.enter_context(self._pace.writing())
        self.tell()

    def _save_due(self) -> bool:
        """Whether a checkpoint is due, in every process alike."""
        from accelerate.utils import broadcast_object_list

        keep_every = self._cell.job.keep_every
        due = [self._pace.due() or bool(keep_every and self._cell.step % keep_every == 0)]
        return bool(broadcast_object_list(due)[0])

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """The checkpoint of this process is written; with those of all others and the tables it is whole."""
        self._trainer.accelerator.wait_for_everyone()
        self._checkpoint = state.global_step
        if self._trainer.accelerator.is_main_process:
            self._cell.recorder.write(self._folder / f"{CHECKPOINT}{state.global_step}")
        self._writing.close()
        self.tell()

    def tell(self, status: str = "") -> None:
        """Say how far the cell is.

        Args:
            status: How it has ended; empty: it has not.
        """
        if self._trainer.accelerator.is_main_process:
            Progress(
                step=self._cell.step,
                reward=float(self._trainer._rewards.mean()),
                ess=self._cell.ess,
                checkpoint=self._checkpoint,
                status=status,
                stopped=self._cell.stopped,
            ).write(self._folder)


def cell_trainer_class(cell: CellRun) -> Any:
    """TRL's trainer with the method and the lag of a cell."""
    from trl import GRPOTrainer

    base = with_method(GRPOTrainer, cell.config.parts.method, f"fifo({cell.config.staleness})")
    return type("CellGRPOTrainer", (CellTraining, base), {"cell": cell})


def cell_callback(trainer: Any, folder: Path) -> Any:
    """The callback of a cell, as one of the installed transformers."""
    from transformers import TrainerCallback

    return type("CellCallback", (CellCallback, TrainerCallback), {})(trainer, folder)


def _padded(samples: Samples, width: int, eos: int | None) -> Tensor:
    """`[B, width]` token ids of the responses, filled up with the end token."""
    ids, mask = samples["completion_ids"], samples["completion_mask"].bool()
    filled: Tensor = torch.nn.functional.pad(
        ids.masked_fill(~mask, eos or 0), (0, width - ids.shape[1]), value=eos or 0
    )
    return filled
