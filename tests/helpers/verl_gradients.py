"""The gradient of every method in verl's own trainer and FSDP worker against an oracle that shares no code with ours.

Run by `tests/integrations/test_verl_gradients.py`, also under torchrun:
`verl_gradients.py OUT MICRO_BATCHES MINI_BATCHES EPOCHS EXPRESSION ...`. The method changes at every step of verl, so
that one run measures all. With one optimizer step per batch the weights stay as they are; with several they move.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import verl_cpu  # noqa: F401
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from verl_runs import LENGTH, PROMPTS, RESPONSES, config, save_model, start_ranks, steps, trainer, whole_model, worker

from vcpo_bench.adapters.coefficients import Coefficients
from vcpo_bench.adapters.locality import locality_of
from vcpo_bench.methods import Batch, Method, Update, parse_method


def wide(values: list[Tensor]) -> Tensor:
    padded = pad_sequence(values, batch_first=True)
    return torch.nn.functional.pad(padded, (0, LENGTH - padded.shape[1]))


class Rows:
    """What is stored of some trajectories, and what a plain model says about them."""

    def __init__(self, run: Any, keys: list[str]) -> None:
        kept = [key for key in keys if not run.store.tags["train"][key].get("is_padding")]
        self.rows = [run.store.rows["train"][key] for key in kept]
        tags = [run.store.tags["train"][key] for key in kept]
        self.version = torch.tensor([tag["min_global_steps"] for tag in tags])
        prompts = [key.split("_")[0] for key in kept]
        self.group = torch.tensor([sorted(set(prompts)).index(prompt) for prompt in prompts])
        self.mask = wide([row["response_mask"] for row in self.rows]).bool()
        self.reward = torch.stack([row["rm_scores"].sum() for row in self.rows])
        self.behavior = wide([row["rollout_log_probs"] for row in self.rows])

    def logs(self, model: Any) -> list[Tensor]:
        """One row each: `[T, V]` of the response."""
        found = []
        for row in self.rows:
            ids, length = row["input_ids"], len(row["responses"])
            found.append(model(input_ids=ids[None]).logits[0].log_softmax(-1)[-length - 1 : -1])
        return found

    def logp(self, logs: list[Tensor]) -> Tensor:
        taken = [log.gather(1, row["responses"][:, None])[:, 0] for log, row in zip(logs, self.rows, strict=True)]
        return wide(taken)


class Comparison:
    """Compares every optimizer step of a run."""

    def __init__(self, run: Any, expressions: list[str], move: bool) -> None:
        self.run, self.expressions, self.results = run, expressions, list[dict[str, Any]]()
        self.model: Any = None
        self.proximal: Any = None
        self.measured: list[Tensor] = []
        self.rates: list[float] = []
        self._update, run._update = run._update, self.update
        scaled = run.actor_rollout_wg.worker._scaled_step
        plain = scaled._step

        def recorded() -> Any:
            engine = run.actor_rollout_wg.worker.engine
            self.measured = [p.grad.full_tensor().clone() for p in engine.module.parameters()]
            self.rates = [group["lr"] for group in engine.optimizer.param_groups]
            return plain() if move else 0.0

        scaled._step = recorded

    def choose(self, expression: str) -> Method:
        """The method of the next step."""
        run, method = self.run, parse_method(expression)
        locality = locality_of(method)
        run.method, run._coefficients = method, Coefficients(method, LENGTH)
        run._needs, run._has_bonus = locality.needs, locality.entropy_bonus
        run.config.actor_rollout_ref.actor.calculate_entropy = locality.entropy_bonus
        return method

    def update(self, part: Any, number: int, updates: int) -> Any:
        run = self.run
        self.model = whole_model(run.actor_rollout_wg.worker)
        if number == 0:
            self.proximal = self.model
        rate = run.actor_rollout_wg.worker.engine.optimizer.param_groups[0]["lr"]
        rows = Rows(run, part.keys)
        logged = self._update(part, number, updates)
        now = (run.global_steps - 1) * updates + number
        batch, update, wanted = self._wanted(rows, run.method, now, updates)
        error = sum(float((a - b).square().sum()) for a, b in zip(self.measured, wanted, strict=True))
        size = sum(float(b.square().sum()) for b in wanted)
        self.results.append(
            {
                "expression": run.method.canonical,
                "error": (error / size) ** 0.5 if size else error,
                "size": size**0.5,
                "scale": self.rates[0] / rate if rate else 1.0,
                "wanted_scale": float(update.step_scale),
                "logged_scale": logged["vcpo_bench/step_scale"],
                "lengths": sorted({int(row.sum()) for row in rows.mask}),
                "groups": sorted(batch.valid.sum(1).tolist()),
                "empty_groups": int((batch.mask.sum((1, 2)) == 0).sum()),
                "filled_up": len(part.keys) - len(rows.rows),
            }
        )
        return logged

    def _wanted(self, rows: Rows, method: Method, now: int, updates: int) -> tuple[Batch, Update, list[Tensor]]:
        logs = rows.logs(self.model)
        entropy = wide([-(log.exp() * log).sum(-1) for log in logs])
        logp = rows.logp(logs)
        proximal = logp.detach()
        if self.proximal is not self.model:
            with torch.no_grad():
                proximal = rows.logp(rows.logs(self.proximal))
        batch = Batch.from_rows(
            logp=logp.detach(),
            behavior_logp=rows.behavior,
            mask=rows.mask,
            reward=rows.reward,
            group=rows.group,
            version=(rows.version * updates)[:, None].expand(-1, LENGTH),
            now=now,
            entropy=entropy.detach(),
            sum_pi_sq=wide([(2 * log).exp().sum(-1) for log in logs]).detach(),
            score_norm_sq=self._norms(rows, logp) if "score_norm_sq" in method.needs else None,
            proximal_logp=proximal,
        )
        update = method(batch)
        loss = (batch.to_rows(update.coefficients) * logp * rows.mask).sum()
        if update.entropy_coefficients is not None:
            loss = loss + (batch.to_rows(update.entropy_coefficients) * entropy * rows.mask).sum()
        self.model.zero_grad(set_to_none=True)
        (-loss).backward()
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.model.parameters()]
        return batch, update, gradients

    def _norms(self, rows: Rows, logp: Tensor) -> Tensor:
        """One backward pass per row of the whole model."""
        parameters = list(self.model.parameters())
        sums = (logp * rows.mask).sum(1)
        gradients = [torch.autograd.grad(one, parameters, retain_graph=True) for one in sums]
        return torch.stack([sum(each.square().sum() for each in found) for found in gradients])


def measure(folder: Path, micro: int, mini: int, epochs: int, expressions: list[str]) -> list[dict[str, Any]]:
    if dist.get_rank() == 0:
        save_model(folder / "model")
    dist.barrier()
    settings = config(
        folder,
        "tis",
        "vcpo_bench",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={PROMPTS // mini}",
        f"actor_rollout_ref.actor.ppo_epochs={epochs}",
    )
    made = worker(folder / "model", PROMPTS * RESPONSES // mini // micro // dist.get_world_size(), packed=micro > 1)
    run = trainer(settings, made, spread=3)
    comparison = Comparison(run, expressions, move=mini * epochs > 1)
    for expression in expressions:
        comparison.choose(expression)
        steps(run, 1)
    return comparison.results


if __name__ == "__main__":
    out, micro, mini, epochs, *expressions = sys.argv[1:]
    start_ranks()
    results = measure(Path(out), int(micro), int(mini), int(epochs), expressions)
    Path(out, f"rank{dist.get_rank()}.json").write_text(json.dumps(results))
    dist.destroy_process_group()
