"""Two runs of verl's own trainer, one that learns and one that collapses, for `diagnose --baseline reference`.

python tools/reference_runs/train_verl.py OUT [healthy] [collapsed]    needs verl 0.9.1; in an environment of its own

verl's V1 trainer, loss, FSDP worker and metric functions run as they are, in one process on a CPU; only sampling is
done here, without Ray and without an inference engine. `OUT/NAME.jsonl` is what verl's file logger writes,
`OUT/verl-NAME.csv` what ships of it.
"""

from __future__ import annotations

import json
import random
import sys
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "tests" / "helpers")]

import torch
import verl_runs as verl
import verl_store
from pack import write
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

verl.PROMPTS, verl.RESPONSES, verl.LENGTH = 4, 8, 8
EOS, FIRST = 1, 2
"""The end, and the first of the tokens that are counted through."""
NAMES = (
    *("training/global_step", "critic/score/mean", "actor/entropy", "actor/grad_norm", "actor/pg_loss", "actor/lr"),
    *("actor/pg_clipfrac", "rollout_corr/k3_kl", "rollout_corr/chi2_seq", "training/rollout_probs_diff_mean"),
    *("response_length/mean", "response_length/clip_ratio", "training/off_policy/trajectory_staleness/mean"),
)


class Run(NamedTuple):
    """What the two runs differ in.

    Attributes:
        rate: Learning rate.
        lag: Versions by which the sampling policy is behind the trained one.
        steps: Updates.
    """

    rate: float
    lag: int
    steps: int


RUNS = {"healthy": Run(3e-3, 0, 240), "collapsed": Run(1e-2, 16, 240)}


class StaleSampler(verl.Sampler):
    """Samples from the weights of `lag` updates ago, as verl's agent loop does asynchronously, and judges responses."""

    def __init__(self, run: Any, lag: int) -> None:
        super().__init__(run, noise=0.0, spread=1)
        self._models: deque[Any] = deque(maxlen=lag + 1)
        self._draw = random.Random(0)
        torch.manual_seed(0)

    def generate_sequences(self, batch: Any) -> None:
        """Write the responses to every prompt of a batch into verl's queue."""
        self._models.append((self.run.version, verl.whole_model(self.run.actor_rollout_wg.worker)))
        version, model = self._models[0]
        for uid in batch["uid"]:
            rows = self._respond(model, str(uid))
            fields = [field for field, _ in rows]
            tags = [{**tag, "min_global_steps": version, "max_global_steps": version} for _, tag in rows]
            keys = [f"{uid}_{session}_0" for session in range(len(rows))]
            self.run.store.kv_batch_put(keys, "train", fields=list_of_dict_to_tensordict(fields), tags=tags)
            self.run.store.kv_batch_put([str(uid)], "train", tags=[{"status": "finished"}])

    def _respond(self, model: Any, uid: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        prompt = torch.tensor([self._draw.randrange(2, verl.WORDS) for _ in range(2)])
        ids, logs = prompt.repeat(verl.RESPONSES, 1), []
        for _ in range(verl.LENGTH):
            with torch.no_grad():
                scores = model(ids).logits[:, -1].log_softmax(-1)
            token = torch.multinomial(scores.exp(), 1)
            logs.append(scores.gather(1, token))
            ids = torch.cat([ids, token], dim=1)
        responses, logp = ids[:, 2:], torch.cat(logs, dim=1)
        return [_row(uid, prompt, row, log) for row, log in zip(responses, logp, strict=True)]


def _jagged(rows: list[dict[str, Any]]) -> Any:
    """Rows as verl's queue gives them, of unequal lengths: also where all happen to be equal."""
    batch = list_of_dict_to_tensordict(rows)
    for name, value in list(batch.items()):
        if torch.is_tensor(value) and not value.is_nested and value.dim() == 2:
            batch[name] = torch.nested.as_nested_tensor(list(value.unbind()), layout=torch.jagged)
    return batch


def _counted_on(before: int, response: list[int]) -> int:
    """Tokens that are the successor of the one before: none of a policy that repeats one token."""
    tokens = verl.WORDS - FIRST
    pairs = zip([before, *response], response, strict=False)
    return sum(after == FIRST + (one - FIRST + 1) % tokens for one, after in pairs)


def _row(uid: str, prompt: Any, response: Any, logp: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    ends = (response == EOS).nonzero()
    length = int(ends[0]) + 1 if len(ends) else len(response)
    response, logp = response[:length], logp[:length]
    reward = _counted_on(int(prompt[-1]), response.tolist()) / verl.LENGTH
    return verl_store.queue_row(uid, prompt, response, torch.ones(length, dtype=torch.long), reward, logp)


def train(name: str, out: Path) -> None:
    """Train with verl's GRPO loss and without a reference policy; a row is written as soon as its step ends."""
    verl.start_ranks()
    verl_store.list_of_dict_to_tensordict = _jagged
    chosen = RUNS[name]
    model = verl.save_model(out / f"{name}.model")
    worker = verl.worker(model, 32, ours=False, rate=chosen.rate)
    trainer = verl.trainer(verl.config(out / name, None, "sync"), worker)
    trainer.agent_loop_manager = StaleSampler(trainer, chosen.lag)
    with (out / f"{name}.jsonl").open("w", encoding="utf-8") as file:
        for step in range(1, chosen.steps + 1):
            (logged,) = verl.steps(trainer, 1)
            numbers = {key: float(value) for key, value in logged.items()}
            file.write(json.dumps({"step": step, "data": numbers}) + "\n")
            file.flush()
    logged = [json.loads(line)["data"] for line in (out / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    write(out / f"verl-{name}.csv", logged, NAMES)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    for one in sys.argv[2:] or list(RUNS):
        train(one, place)
