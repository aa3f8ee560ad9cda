"""One process of a cell inside TRL: `python -m vcpo_bench.adapters.trl.cell.train job.json`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch

from vcpo_bench.adapters.trl.cell.cell_run import CellRun
from vcpo_bench.adapters.trl.cell.cell_trainer import cell_callback, cell_trainer_class
from vcpo_bench.bench.trainers.job import TABLES, TrainerJob, carry_out
from vcpo_bench.bench.training.learner_step import GRAD_CLIP
from vcpo_bench.methods import load_plugin


def trainer_of(cell: CellRun, folder: Path) -> Any:
    """TRL's trainer of a cell, before its first update."""
    from transformers import PrinterCallback
    from trl import GRPOConfig

    config, optimizer, trainer = cell.config, cell.config.parts.optimizer, cell.config.parts.trainer
    rows = config.prompts * config.responses // trainer.ranks
    in_one_pass = _rows_in_one_pass(rows, config.micro_tokens, cell.task.prompt_length + cell.task.max_response)
    vllm: Any = trainer
    settings = GRPOConfig(
        output_dir=str(folder),
        max_steps=cell.job.updates,
        seed=config.seed,
        per_device_train_batch_size=in_one_pass,
        gradient_accumulation_steps=rows // in_one_pass,
        num_generations=config.responses,
        max_completion_length=cell.task.max_response,
        shuffle_dataset=False,  # the order of the rows is that of the cell's batches
        learning_rate=config.lr,
        optim="adamw_torch_fused",
        adam_beta1=optimizer.beta1,  # type: ignore[attr-defined]
        adam_beta2=optimizer.beta2,  # type: ignore[attr-defined]
        adam_epsilon=optimizer.eps,  # type: ignore[attr-defined]
        weight_decay=config.weight_decay,
        max_grad_norm=GRAD_CLIP,
        beta=1.0 if "reference_logp" in config.parts.method.needs else 0.0,  # only whether it is 0 matters
        use_cpu=config.device == "cpu",
        bf16=config.dtype == "bfloat16",
        gradient_checkpointing=config.checkpointing,
        use_vllm=vllm.vllm != "off",
        vllm_mode="server" if vllm.vllm == "server" else "colocate",
        report_to="none",
        logging_strategy="no",
        save_strategy="no",
        disable_tqdm=True,
    )
    made = cell_trainer_class(cell)(
        model=cell.policy.network,
        args=settings,
        reward_funcs=cell.prompts.reward,
        train_dataset=cell.prompts.dataset(),
        processing_class=cell.task.tokenizer,
    )
    made.remove_callback(PrinterCallback)
    return made


def _rows_in_one_pass(rows: int, limit: int, positions: int) -> int:
    """The largest number of rows that divides all rows and keeps a pass within `limit` positions; 0: no limit."""
    fitting = [count for count in range(1, rows + 1) if rows % count == 0 and count * positions <= limit]
    return rows if not limit else max(fitting, default=1)


def train(job_file: Path) -> None:
    """Train the cell of a job to its end, and leave its tables beside the file."""
    job, folder = TrainerJob.read(job_file), job_file.parent
    for plugin in job.plugins:
        load_plugin(plugin)
    cell = CellRun(job)
    if cell.config.device == "cpu":
        torch.set_num_threads(1)
    trainer = trainer_of(cell, folder)
    callback = cell_callback(trainer, folder)
    trainer.add_callback(callback)
    trainer.train(resume_from_checkpoint=job.resume or None)
    if trainer.accelerator.is_main_process:
        (folder / TABLES).mkdir(exist_ok=True)
        cell.recorder.write(folder / TABLES)
        callback.tell(cell.status)


if __name__ == "__main__":
    carry_out(train, Path(sys.argv[1]).resolve())
