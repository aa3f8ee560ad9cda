"""Two runs of TRL's GRPOTrainer, one that learns and one that collapses, for `diagnose --baseline reference`.

python tools/reference_runs/train_trl.py OUT [healthy] [collapsed]    needs TRL 1.16

A Llama of a few thousand weights is rewarded for each place of a pattern that it gets right. The healthy run is TRL as
it is. The other one fails as people's runs do: stale samples, a larger rate, and neither clipping, correction nor KL.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "tests" / "helpers")]

import trl_runs as trl
from pack import write

PATTERN = "01230123"
"""The reward is the share of places that hold its characters: a policy that repeats one of them gets 1/4."""
UPDATES = 400
NAMES = (
    *("step", "reward", "reward_std", "frac_reward_zero_std", "entropy", "grad_norm", "loss", "learning_rate"),
    *("completions/mean_length", "completions/clipped_ratio"),
)
OURS = ("vcpo_bench/ess_ratio", "vcpo_bench/lag_mean")
"""What our lag adapter logs beside TRL's names."""


class Run(NamedTuple):
    """What the two runs differ in.

    Attributes:
        method: Expression in place of TRL's loss; None: TRL's own.
        lag: Of `with_method`.
        rate: Learning rate.
    """

    method: str | None
    lag: str
    rate: float


RUNS = {"healthy": Run(None, "fifo(0)", 3e-3), "collapsed": Run("reinforce", "fifo(16)", 1e-2)}


def pattern(completions: list[str], **_: Any) -> list[float]:
    """Share of places that hold the character of the pattern."""
    return [sum(a == b for a, b in zip(text, PATTERN, strict=False)) / len(PATTERN) for text in completions]


def train(name: str, out: Path) -> None:
    """Train, and write `trl-NAME.csv`."""
    method, lag, rate = RUNS[name]
    trainer = trl.trainer(
        out / name,
        method,
        lag,
        model=trl.saved_model(out / name),
        reward=pattern,
        data=trl.prompts(200),
        per_device_train_batch_size=32,
        gradient_accumulation_steps=1,
        num_generations=8,
        learning_rate=rate,
        max_steps=UPDATES,
        temperature=1.0,
    )
    trainer.train()
    rows = [row for row in trainer.state.log_history if "reward" in row]
    write(out / f"trl-{name}.csv", rows, NAMES if method is None else NAMES + OURS)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    for one in sys.argv[2:] or list(RUNS):
        train(one, place)
