"""Two real TRL runs for the study of `diagnose`: one that learns, and one whose verifier fails half-way.

python tools/diagnose_study/train_trl.py OUT [healthy] [broken]    needs trl 1.16.0; run in an environment of its own
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

from plain_columns import write_columns
from transformers import LlamaForCausalLM
from trl_runs import model, trainer

STEPS = {"healthy": 200, "broken": 120}
FAILS_AT = 60
"""Update from which on the verifier of the broken run answers 0, as one does that runs into its time limit."""
BATCH = 16
COLUMNS = {
    "reward": "reward",
    "entropy": "entropy",
    "grad_norm": "grad_norm",
    "loss": "loss",
    "completions/mean_length": "length_mean",
    "completions/clipped_ratio": "truncated_share",
    "frac_reward_zero_std": "zero_variance_share",
    "clip_ratio/region_mean": "share_clipped",
}
"""TRL's names and ours."""


def share_of_digits(completions: list[str], **_: object) -> list[float]:
    """Digits among the first 8 characters: 0 to 1."""
    return [sum(c.isdigit() for c in text[:8]) / 8 for text in completions]


def verifier(name: str) -> Callable[..., list[float]]:
    """The reward of a run."""
    asked = 0

    def reward(completions: list[str], **_: object) -> list[float]:
        nonlocal asked
        asked += len(completions)
        fails = name == "broken" and asked > FAILS_AT * BATCH
        return [0.0] * len(completions) if fails else share_of_digits(completions)

    return reward


def run(name: str, out: Path) -> None:
    """Train, and leave `trainer_state.json` as a user's checkpoint holds it."""
    policy: LlamaForCausalLM = model(hidden_size=32, intermediate_size=48)
    settings = {"max_steps": STEPS[name], "learning_rate": 3e-3}
    built = trainer(out / name, None, model=policy, reward=verifier(name), **settings)
    built.train()
    place = out / f"{name}.trl"
    place.mkdir(parents=True, exist_ok=True)
    built.state.save_to_json(str(place / "trainer_state.json"))
    rows = [(row["step"], row) for row in built.state.log_history if "reward" in row]
    write_columns(out / f"{name}.columns.csv", rows, COLUMNS)


if __name__ == "__main__":
    for one in sys.argv[2:] or list(STEPS):
        run(one, Path(sys.argv[1]))
