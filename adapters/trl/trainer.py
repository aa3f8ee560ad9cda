"""The part of a `GRPOTrainer` that a method replaces: advantage, loss and averaging, and nothing else.

At the start of an optimizer step all its micro-batches are scored under the current weights. The rows of all ranks are
gathered, and the method turns them into one coefficient per token. Each micro-batch then minimizes `-sum c log pi`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from vcpo_bench.adapters import checkpoint
from vcpo_bench.adapters.coefficients import Coefficients, Decision, StepRows, gather, join
from vcpo_bench.adapters.locality import locality_of
from vcpo_bench.adapters.trl.callbacks import step_callback
from vcpo_bench.adapters.trl.groups import micro_batches, order_of_rows
from vcpo_bench.adapters.trl.lag import LagQueue, PromptStream, Samples
from vcpo_bench.adapters.trl.optimizer_step import OptimizerStep
from vcpo_bench.adapters.trl.refusals import check
from vcpo_bench.adapters.trl.reuse import Budget, Kept, loss_from
from vcpo_bench.adapters.trl.scoring import Scorer, loss_mask
from vcpo_bench.methods import Method

OURS = "vcpo_bench_"
"""Prefix of what is added to the samples."""
LOGGED = "vcpo_bench/"
"""Prefix of what is added to the log."""


class MethodGRPOTrainer:
    """Stands before a `GRPOTrainer` in the class that `with_method` returns.

    Class attributes:
        method: The method.
        lag: The k of `fifo(k)`.

    Attributes:
        rows: Rows of the current optimizer step, of all ranks.
        decision: What the method decided on it, in the order of the rows.
    """

    method: ClassVar[Method]
    lag: ClassVar[int]
    accelerator: Any
    args: Any
    model: Any
    state: Any
    _buffered_inputs: list[Samples] | None
    _metrics: Any
    _step: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        parent: Any = super()
        parent.__init__(*args, **kwargs)
        trainer: Any = self
        check(trainer, self.method, self.lag)
        self._locality = locality_of(self.method)
        self._scorer = Scorer(trainer, self._locality.needs)
        self._coefficients = Coefficients(self.method, trainer.max_completion_length)
        self._budget = Budget(trainer)
        self._kept: dict[int, Kept] = {}
        self.optimizer_step = OptimizerStep(self.method, self._budget.parameters)
        self._queue = LagQueue(self.lag, self._sample_ahead)
        self._stream: PromptStream | None = None
        generated = self.args.steps_per_generation * trainer.num_iterations
        # what is trained on once, by the weights that sampled it, is scored once
        self._one_update = not self.lag and generated == self.args.gradient_accumulation_steps
        self._sampled_groups = 0
        self._rewards: Tensor | None = None
        self._place = 0
        self.rows: StepRows | None = None
        self.decision: Decision | None = None
        trainer.add_callback(step_callback(trainer))

    # -- sampling ----------------------------------------------------------------------------------------------------

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> Tensor:
        """Keeps the reward of every row of all ranks: NaN where no reward function judged it."""
        parent: Any = super()
        trainer: Any = self
        rewards: Tensor = parent._calculate_rewards(*args, **kwargs)
        total = (rewards * trainer.reward_weights.to(rewards.device)).nansum(1)
        self._rewards = total.masked_fill(rewards.isnan().all(1), torch.nan)
        return rewards

    def _generate_and_score_completions(self, inputs: Any) -> Samples:
        """Adds to the samples what a method needs to know of them."""
        parent: Any = super()
        trainer: Any = self
        samples: Samples = parent._generate_and_score_completions(inputs)
        if not trainer.model.training:
            return samples
        assert self._rewards is not None
        rows, device = len(samples["prompt_ids"]), samples["prompt_ids"].device
        place = torch.arange(rows, device=device) + rows * self.accelerator.process_index
        samples[f"{OURS}reward"] = self._rewards[place]
        samples[f"{OURS}group"] = place // trainer.num_generations + self._sampled_groups
        samples[f"{OURS}version"] = torch.full((rows,), self.state.global_step, device=device)
        if not (self._one_update and "sampling_per_token_logps" not in samples):
            samples[f"{OURS}behavior"] = self._behavior(samples)
        self._sampled_groups += rows * self.accelerator.num_processes // trainer.num_generations
        return samples

    def _behavior(self, samples: Samples) -> Tensor:
        """`[B, T]` log-probabilities as the sampling engine reported them, else as the sampling weights have them.

        A token whose log-probability the engine could not tell (NaN) gets that of the weights, too.
        """
        reported: Tensor | None = samples.get("sampling_per_token_logps")
        if reported is not None:
            unknown = torch.isnan(reported) & loss_mask(samples)
            count = int(self.accelerator.gather(unknown.sum()).sum())  # the ranks score together, or none does
            if not count:
                return reported.float()
            self._log("unreported_logps", float(count))
        own = self._scorer.logp(samples, self.args.per_device_train_batch_size).float()
        return own if reported is None else torch.where(torch.isnan(reported), own, reported.float())

    def _sample_ahead(self) -> Samples:
        trainer: Any = self
        return trainer._generate_and_score_completions(self._prompts().draw())  # type: ignore[no-any-return]

    def _prompts(self) -> PromptStream:
        if self._stream is None:
            trainer: Any = self
            self._stream = PromptStream(
                trainer.train_dataset,
                trainer._get_train_sampler(),
                rows=self.args.per_device_train_batch_size * self.args.steps_per_generation,
                rank=self.accelerator.process_index,
                ranks=self.accelerator.num_processes,
                repeats=self.args.steps_per_generation * trainer.num_iterations,
            )
        return self._stream

    # -- one optimizer step ------------------------------------------------------------------------------------------

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        """The next micro-batch; before the first of an optimizer step the method decides on all of them."""
        parent: Any = super()
        trainer: Any = self
        if not trainer.model.training:
            return parent._prepare_inputs(generation_batch)
        steps, micro = self.args.steps_per_generation, self.args.gradient_accumulation_steps
        if self._step % (steps * trainer.num_iterations) == 0 or self._buffered_inputs is None:
            self._buffered_inputs = self._micro_batches(generation_batch)
        at = self._step % steps
        if self._step % micro == 0:
            self._decide(self._buffered_inputs[at : at + micro])
        self._place = self._step % micro
        return self._buffered_inputs[at]

    def _micro_batches(self, generation_batch: Any) -> list[Samples]:
        trainer: Any = self
        samples = self._queue.next() if self.lag else trainer._generate_and_score_completions(generation_batch)
        if "proximal_logp" in self._locality.needs:
            samples[f"{OURS}proximal"] = self._scorer.logp(samples, self.args.per_device_train_batch_size).float()
        windows = self.args.steps_per_generation // self.args.gradient_accumulation_steps
        order = order_of_rows(len(samples["prompt_ids"]), windows, trainer.num_generations)
        return micro_batches(samples, order, self.args.steps_per_generation)

    @torch.no_grad()
    def _decide(self, window: Sequence[Samples]) -> None:
        """Give every micro-batch of an optimizer step its coefficients."""
        self._kept.clear()
        self._budget.start()
        last_first = [self._rows_of(window[place], place) for place in reversed(range(len(window)))]
        own = join(last_first[::-1], self._coefficients.width)
        self.rows, mine = gather(own)
        now = self.state.global_step
        self.decision = self._coefficients.decide(self.rows, now)
        self._hand_out("coefficients", self.decision.coefficients[mine], window)
        if self.decision.entropy_coefficients is not None:
            self._hand_out("entropy_coefficients", self.decision.entropy_coefficients[mine], window)
        self._log_step(self.rows, self.decision, now)

    def _log_step(self, rows: StepRows, decision: Decision, now: int) -> None:
        lag = (now - rows.version).float()
        measured = {
            "step_scale": decision.step_scale,
            "step_skipped": float(bool(decision.skipped)),
            "lag_mean": float(lag.mean()),
            "lag_max": float(lag.max()),
        }
        for name, value in {**decision.metrics, **measured}.items():
            self._log(name, value)
        assert rows.entropy is not None
        tokens = rows.mask.sum().clamp(min=1)
        self._metrics["train"]["entropy"].append(float(torch.where(rows.mask, rows.entropy, 0.0).sum() / tokens))

    def _rows_of(self, samples: Samples, place: int) -> StepRows:
        scores = self._scorer.score(samples)
        needs = self._locality.needs
        if scores.left and self._budget.admits(scores.left, first=place == 0):
            self._kept[place] = Kept(scores.left, scores.logp)
        return StepRows(
            logp=scores.logp.float(),
            behavior_logp=samples.get(f"{OURS}behavior", scores.logp.float()),
            mask=loss_mask(samples),
            reward=samples[f"{OURS}reward"].float(),
            group=samples[f"{OURS}group"],
            version=samples[f"{OURS}version"],
            proximal_logp=samples.get(f"{OURS}proximal"),
            reference_logp=samples["ref_per_token_logps"].float() if "reference_logp" in needs else None,
            entropy=scores.entropy.float(),
            sum_pi_sq=None if scores.sum_pi_sq is None else scores.sum_pi_sq.float(),
            score_norm_sq=scores.score_norm_sq,
        )

    def _hand_out(self, name: str, values: Tensor, window: Sequence[Samples]) -> None:
        sizes = [len(samples["prompt_ids"]) for samples in window]
        for samples, part in zip(window, torch.split(values, sizes), strict=True):
            missing = samples["completion_ids"].shape[1] - part.shape[1]
            samples[OURS + name] = torch.nn.functional.pad(part, (0, missing))

    def _compute_loss(self, model: Any, inputs: Samples) -> Tensor:
        """`-sum c log pi` of one micro-batch; DDP averages over the ranks, so their number is multiplied."""
        parent: Any = super()
        if f"{OURS}coefficients" not in inputs:
            return parent._compute_loss(model, inputs)  # type: ignore[no-any-return]
        bonus = inputs.get(f"{OURS}entropy_coefficients")
        kept = self._kept.pop(self._place, None)
        if kept is not None and bonus is None:
            known = loss_from(kept, inputs[f"{OURS}coefficients"], loss_mask(inputs), self._budget.parameters)
            if known is not None:
                return known
        logp, entropy = self._scorer.differentiable(model, inputs, entropy=bonus is not None)
        mask = loss_mask(inputs)
        total: Tensor = (inputs[f"{OURS}coefficients"] * torch.where(mask, logp, 0.0)).sum()
        if bonus is not None:
            total = total + (bonus * torch.where(mask, entropy, 0.0)).sum()
        return -total * int(self.accelerator.num_processes)

    def _clip_grad_norm(self, model: Any) -> Any:
        parent: Any = super()
        self.optimizer_step.act_on_gradient(self.decision, self.accelerator.scaler)
        return parent._clip_grad_norm(model)

    def _log(self, name: str, value: float) -> None:
        self._metrics["train"][LOGGED + name].append(value)

    # -- checkpoints -------------------------------------------------------------------------------------------------

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Ours goes first: the parent ends with dropping older checkpoints, which only a whole one replaces."""
        parent: Any = super()
        if not self.args.save_only_model:
            self._save_ours(trial)
        parent._save_checkpoint(model, trial)

    def _save_ours(self, trial: Any) -> None:
        trainer: Any = self
        folder = f"{trainer._get_output_dir(trial=trial)}/checkpoint-{self.state.global_step}"
        first = self.accelerator.process_index == 0
        content = {
            "coefficients": self._coefficients.state_dict(),
            "lag": self.lag,
            "waiting": list(self._queue.waiting),
            "drawn": 0 if self._stream is None else self._stream.drawn,
            "sampled_groups": self._sampled_groups,
            "step": self._step,
            "buffered": self._buffered_inputs if self._in_use() else None,
            "previous_gradient": self.optimizer_step.previous if first else None,
        }
        checkpoint.write(folder, self.accelerator.process_index, content)

    def forget_samples(self) -> None:
        """Drop what waits for an update: a new run does not train on what an earlier one sampled."""
        self._queue.waiting.clear()
        self._buffered_inputs, self._step = None, 0

    def _in_use(self) -> bool:
        """Whether the next step trains on what is sampled already."""
        trainer: Any = self
        return bool(self._step % (self.args.steps_per_generation * trainer.num_iterations))

    def _load_optimizer_and_scheduler(self, folder: str | None) -> None:
        parent: Any = super()
        parent._load_optimizer_and_scheduler(folder)
        if folder is not None:
            self._resume(folder)

    def _resume(self, folder: str) -> None:
        content = checkpoint.read(folder, self.accelerator.process_index)
        self._coefficients.load_state_dict(content["coefficients"])
        checkpoint.check_lag(content["lag"], self.lag)
        self._sampled_groups, self._step = content["sampled_groups"], content["step"]
        device = self.accelerator.device
        self._queue.waiting.extend(checkpoint.on_device(samples, device) for samples in content["waiting"])
        if content["drawn"]:
            self._prompts().skip(content["drawn"])
        if content["buffered"] is not None:
            self._buffered_inputs = [checkpoint.on_device(samples, device) for samples in content["buffered"]]
        gradient = checkpoint.read(folder, 0)["previous_gradient"]
        self.optimizer_step.previous = None if gradient is None else [part.to(device) for part in gradient]
