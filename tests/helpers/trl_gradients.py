"""The gradient of every method in TRL's own training loop against an oracle that shares no code with the adapter.

Run by `tests/integrations/test_trl.py`, also under torchrun: `trl_gradients.py OUT MICRO_BATCHES EXPRESSION ...`.
The method changes at every optimizer step, so that one run measures all. Responses have different lengths, all rows of
one prompt and single rows of others carry no loss, and behavior log-probabilities are noisy.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from transformers import TrainerCallback
from trl import GRPOTrainer
from trl_runs import LENGTH, share_of_digits, tokenizer, trainer

from vcpo_bench.adapters.coefficients import Coefficients
from vcpo_bench.adapters.locality import locality_of
from vcpo_bench.adapters.trl.scoring import Scorer
from vcpo_bench.methods import Batch, Method, Update, parse_method

NOISE = 0.4
EVIDENCE = ("sum_pi_sq", "score_norm_sq")


class Disturbed(GRPOTrainer):  # type: ignore[misc]
    """Samples with an empty group and, elsewhere, an empty row."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        samples = super()._generate_and_score_completions(inputs)
        if self.accelerator.process_index == 0:
            samples["completion_mask"][: self.num_generations] = 0
        samples["completion_mask"][-2] = 0
        return samples


def every_row(tensors: list[Any]) -> list[Any]:
    """The values of all ranks, in their order."""
    if not dist.is_initialized():
        return tensors
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, tensors)
    return [value for part in parts for value in part]


def log_softmax(model: Any, samples: dict[str, Tensor], temperature: float) -> Tensor:
    """`[B, T, V]` by the plain forward pass."""
    ids = torch.cat([samples["prompt_ids"], samples["completion_ids"]], 1)
    attended = torch.cat([samples["prompt_mask"], samples["completion_mask"]], 1)
    width = samples["completion_ids"].shape[1]
    logits = model(input_ids=ids, attention_mask=attended, use_cache=False).logits[:, -width - 1 : -1]
    return (logits / temperature).log_softmax(-1)


def chosen(logs: Tensor, samples: dict[str, Tensor]) -> Tensor:
    return logs.gather(-1, samples["completion_ids"].unsqueeze(-1)).squeeze(-1)


def score_norms(model: Any, samples: dict[str, Tensor], temperature: float) -> Tensor:
    """`[B]` by one backward pass per row."""
    trained = [p for p in model.parameters() if p.requires_grad]
    squares = []
    for row in range(len(samples["prompt_ids"])):
        one = {
            name: samples[name][row : row + 1]
            for name in samples
            if torch.is_tensor(samples[name])
            and samples[name].dim()
            and len(samples[name]) == len(samples["prompt_ids"])
        }
        total = (chosen(log_softmax(model, one, temperature), one) * one["completion_mask"]).sum()
        gradients = torch.autograd.grad(total, trained, allow_unused=True)
        squares.append(sum((g**2).sum() for g in gradients if g is not None))
    return torch.stack([torch.as_tensor(square) for square in squares])


def evidence(run: Any, model: Any, window: list[Any], method: Method) -> list[dict[str, Any]]:
    """One row each: everything that the method may read, worked out anew."""
    rows = []
    for samples in window:
        with torch.no_grad():
            logs = log_softmax(model, samples, run.temperature)
        picked = chosen(logs, samples)
        norms = score_norms(model, samples, run.temperature) if "score_norm_sq" in method.needs else None
        texts = tokenizer().batch_decode(samples["completion_ids"], skip_special_tokens=True)
        for row, text in enumerate(texts):
            prompt = samples["prompt_ids"][row][samples["prompt_mask"][row].bool()].tolist()
            rows.append(
                {
                    "logp": picked[row],
                    "behavior_logp": samples["vcpo_bench_behavior"][row],
                    "mask": samples["completion_mask"][row].bool(),
                    "entropy": -(logs.exp() * logs).sum(-1)[row],
                    "sum_pi_sq": (2 * logs).exp().sum(-1)[row],
                    "reward": torch.tensor(share_of_digits([text])[0]),
                    "prompt": str(prompt),
                    "group": int(samples["vcpo_bench_group"][row]),
                    "score_norm_sq": torch.ones(()) if norms is None else norms[row],
                }
            )
    return [{name: value.cpu() if torch.is_tensor(value) else value for name, value in row.items()} for row in rows]


def update_of(method: Method, rows: list[dict[str, Any]], now: int) -> tuple[Batch, Update]:
    pairs = {(row["prompt"], row["group"]) for row in rows}
    assert len(pairs) == len({prompt for prompt, _ in pairs}) == len({group for _, group in pairs})
    fields = {
        name: torch.stack([pad(row[name]) for row in rows])
        for name in ("logp", "behavior_logp", "mask", "entropy", "sum_pi_sq", "reward", "score_norm_sq")
    }
    group = torch.tensor([row["group"] for row in rows])
    optional = {"proximal_logp": fields["logp"]} if "proximal_logp" in method.needs else {}
    version = torch.full(fields["mask"].shape, now)
    batch = Batch.from_rows(**fields, **optional, group=group, version=version, now=now)
    return batch, method(batch)


def pad(value: Tensor) -> Tensor:
    return value if not value.dim() else torch.nn.functional.pad(value, (0, LENGTH - len(value)))


class Comparison(TrainerCallback):  # type: ignore[misc]
    """Changes the method before a step and compares the gradient after it."""

    def __init__(self, run: Any, expressions: list[str]) -> None:
        self.run, self.expressions = run, expressions
        self.results: list[dict[str, Any]] = []

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        run, method = self.run, parse_method(self.expressions[state.global_step])
        run._locality, run._coefficients = locality_of(method), Coefficients(method, LENGTH)
        run.optimizer_step._method = method
        self.rate = run.optimizer.param_groups[0]["lr"]

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        run = self.run
        model, method = run.accelerator.unwrap_model(run.model), run._coefficients.method
        measured = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
        window = run._buffered_inputs
        own = evidence(run, model, window, method)
        rows = every_row(own)
        batch, update = update_of(method, rows, state.global_step)
        mine = len(own) * run.accelerator.process_index
        wanted = self._gradient(model, window, batch, update, slice(mine, mine + len(own)))
        error = sum(float((a - b).square().sum()) for a, b in zip(measured, wanted, strict=True))
        size = sum(float(b.square().sum()) for b in wanted)
        for parameter, gradient in zip(model.parameters(), measured, strict=True):
            parameter.grad = gradient
        self.results.append(
            {
                "expression": self.expressions[state.global_step],
                "error": (error / size) ** 0.5 if size else error,
                "size": size**0.5,
                "scale": run.optimizer.param_groups[0]["lr"] / self.rate,
                "wanted_scale": float(update.step_scale),
                "lengths": sorted({int(row["mask"].sum()) for row in rows}),
                "groups": sorted(torch.unique(batch.valid.sum(1)).tolist()),
                "empty_groups": int((batch.mask.sum((1, 2)) == 0).sum()),
            }
        )

    def _gradient(self, model: Any, window: list[Any], batch: Batch, update: Update, mine: slice) -> list[Tensor]:
        model.zero_grad(set_to_none=True)
        device, bonus = window[0]["completion_ids"].device, update.entropy_coefficients
        coefficients = batch.to_rows(update.coefficients)[mine].to(device)
        entropies = torch.zeros_like(coefficients) if bonus is None else batch.to_rows(bonus)[mine].to(device)
        start = 0
        for samples in window:
            logs = log_softmax(model, samples, self.run.temperature)
            width = logs.shape[1]
            part = slice(start, start + len(logs))
            start += len(logs)
            mask = samples["completion_mask"].bool()
            loss = (coefficients[part, :width] * torch.where(mask, chosen(logs, samples), 0.0)).sum()
            entropy = -(logs.exp() * logs).sum(-1)
            (-loss - (entropies[part, :width] * torch.where(mask, entropy, 0.0)).sum()).backward()
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()]
        if dist.is_initialized():
            for gradient in gradients:
                dist.all_reduce(gradient)
        return gradients


def noisy(run: Any) -> None:
    """Behavior log-probabilities as of an engine that disagrees with the trainer."""
    plain = run._behavior

    def behavior(samples: Any) -> Tensor:
        logp: Tensor = plain(samples)
        return (logp + NOISE * torch.randn_like(logp)).clamp(max=-1e-3)

    run._behavior, run._one_update = behavior, False


def measure(folder: str, micro: int, expressions: list[str]) -> list[dict[str, Any]]:
    alone = int(os.environ.get("WORLD_SIZE", "1")) == 1
    rows = 4 if micro > 1 else 16 if alone else 12  # of twelve rows on each of two ranks, eight share a prompt
    run = trainer(
        folder,
        "tis",
        base=Disturbed,
        max_steps=len(expressions),
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=micro,
        max_grad_norm=0.0,
        num_generations=8,
    )
    run._scorer = Scorer(run, EVIDENCE)
    noisy(run)
    comparison = Comparison(run, expressions)
    run.add_callback(comparison)
    run.train()
    return comparison.results


if __name__ == "__main__":
    out, micro, *expressions = sys.argv[1:]
    results = measure(out, int(micro), expressions)
    together = dist.is_initialized()
    rank = dist.get_rank() if together else 0
    Path(out, f"rank{rank}-micro{micro}.json").write_text(json.dumps(results))
    if together:  # gloo's threads, still there when Python ends, now and then abort the process
        dist.destroy_process_group()
