"""A method inside TRL: one line wraps the trainer.

Run it: `python examples/trl_one_line.py MODEL [METHOD]`, with the folder or hub name of a causal language model. It
needs `pip install '.[trl]'` in a checkout.
"""

import sys
from typing import Any

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from vcpo_bench.adapters.trl import with_method


def digits(completions: list[str], **columns: Any) -> list[float]:
    """Reward: the share of characters that are digits."""
    return [sum(one.isdigit() for one in text) / max(len(text), 1) for text in completions]


def train(model: str, method: str, out: str, steps: int = 10) -> Any:
    """Train and return the trainer."""
    trainer = with_method(GRPOTrainer, method)(
        model=model,
        args=GRPOConfig(
            output_dir=out,
            num_generations=4,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            max_completion_length=8,
            max_steps=steps,
            logging_steps=1,
            report_to=[],
            bf16=torch.cuda.is_available(),
            save_strategy="no",
        ),
        reward_funcs=digits,
        train_dataset=Dataset.from_dict({"prompt": ["1+1=", "2+1=", "1+0=", "0+3="] * 8}),
    )
    trainer.train()
    return trainer


if __name__ == "__main__":
    run = train(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "vcpo", "out")
    print("rewards:", [round(row["reward"], 2) for row in run.state.log_history if "reward" in row])
