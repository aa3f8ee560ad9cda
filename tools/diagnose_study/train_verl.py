"""Two runs of verl's own trainer for the study of `diagnose`, logged by its own metric functions: see `train_trl.py`.

python tools/diagnose_study/train_verl.py OUT [healthy] [broken]    needs verl 0.9.1; run in an environment of its own

verl's trainer, loss, FSDP worker and metrics run as they are, in one process; sampling is done here, without Ray.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

import torch
import verl_runs as verl
from plain_columns import write_columns

STEPS = {"healthy": 200, "broken": 120}
FAILS_AT = 60
"""Update from which on the verifier of the broken run answers 0, as one does that runs into its time limit."""
WANTED = 8
"""The reward is the share of tokens from this one on: 4 of 12."""
LEARNING_RATE = 3e-3
COLUMNS = {
    "critic/score/mean": "reward",
    "actor/entropy": "entropy",
    "actor/grad_norm": "grad_norm",
    "actor/loss": "loss",
    "response_length/mean": "length_mean",
    "response_length/clip_ratio": "truncated_share",
    "rollout_corr/k3_kl": "kl_mu_theta_k3",
    "actor/pg_clipfrac": "share_clipped",
}
"""verl's names and ours."""


class Policy(verl.Sampler):
    """Samples responses from the policy, as verl's agent loop does, and judges them.

    Args:
        run: The trainer.
        fails: Whether the verifier fails.
    """

    def __init__(self, run: Any, fails: bool) -> None:
        super().__init__(run, noise=0.0, spread=1)
        self._fails = fails

    def _row(self, draw: random.Random, uid: str, empty: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        prompt = [draw.randrange(2, verl.WORDS) for _ in range(2)]
        ids, logs = list(prompt), []
        for _ in range(verl.LENGTH):
            with torch.no_grad():
                scores = self.model(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
            token = draw.choices(range(verl.WORDS), scores.exp().tolist())[0]
            ids.append(token)
            logs.append(float(scores[token]))
        response = ids[len(prompt) :]
        judged = torch.zeros(len(response))
        if not (self._fails and self.run.global_steps > FAILS_AT):
            judged[-1] = sum(token >= WANTED for token in response) / len(response)
        mask = torch.ones(len(response), dtype=torch.long)
        field = {
            "uid": uid,
            "prompts": torch.tensor(prompt),
            "responses": torch.tensor(response),
            "response_mask": mask,
            "loss_mask": mask,
            "input_ids": torch.tensor(ids),
            "position_ids": torch.arange(len(ids)),
            "rm_scores": judged,
            "rollout_log_probs": torch.tensor(logs),
            "num_turns": 2,
        }
        counts = {"seq_len": len(ids), "prompt_len": len(prompt), "response_len": len(response)}
        return field, {**counts, "status": "success"}


def run(name: str, out: Path) -> None:
    """Train with verl's GRPO loss; `NAME.verl.jsonl` is what verl's file logger writes."""
    verl.start_ranks()
    model = verl.save_model(out / f"{name}.model")
    settings = verl.config(out / name, None, "sync")
    trainer = verl.trainer(settings, verl.worker(model, 16, ours=False, rate=LEARNING_RATE))
    trainer.agent_loop_manager = Policy(trainer, fails=name == "broken")
    logged = [{key: float(value) for key, value in one.items()} for one in verl.steps(trainer, STEPS[name])]
    rows = list(enumerate(logged, start=1))
    lines = [json.dumps({"step": step, "data": numbers}) + "\n" for step, numbers in rows]
    (out / f"{name}.verl.jsonl").write_text("".join(lines), encoding="utf-8")
    write_columns(out / f"{name}.columns.csv", rows, COLUMNS)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    for one in sys.argv[2:] or list(STEPS):
        run(one, place)
