"""verl's trainer with a method in place of its advantage, its loss and its averaging.

The driver holds everything a method reads: rewards, prompts, versions, and log-probabilities under the policy that
sampled and the current one. Before every optimizer step it turns the rows of all ranks into one coefficient per token.
The workers minimize `-sum c log pi`, micro-batch by micro-batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from torch import Tensor

from vcpo_bench.adapters import checkpoint
from vcpo_bench.adapters.coefficients import Coefficients, Decision, StepRows
from vcpo_bench.adapters.locality import locality_of
from vcpo_bench.adapters.verl.expression import read_loss_mode
from vcpo_bench.adapters.verl.mini_batches import join, places_of_whole_prompts, select
from vcpo_bench.adapters.verl.monitored import MonitoredTrainer
from vcpo_bench.adapters.verl.names import (
    COEFFICIENTS,
    ENTROPY_COEFFICIENTS,
    LAG_SHARE,
    LAST,
    PROXIMAL,
    SCORE_NORMS,
    SKIP,
    STEP_SCALE,
)
from vcpo_bench.adapters.verl.rows import nested_like, read_rows, refuse_several_outputs

LOGGED = "vcpo_bench/"
"""Prefix of what is added to the log."""


class MethodPPOTrainer(MonitoredTrainer):
    """Stands before a `PPOTrainer` of verl; the method is the one that `policy_loss.loss_mode` names.

    Attributes:
        rows: Rows of the last optimizer step.
        decision: What the method decided on it.
    """

    base_mode: ClassVar[str]
    actor_rollout_wg: Any
    parameter_sync_step: int
    local_trigger_step: int

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        actor = config.actor_rollout_ref.actor
        self.method = read_loss_mode(actor.policy_loss.loss_mode)
        locality = locality_of(self.method)
        self._needs, self._has_bonus = locality.needs, locality.entropy_bonus
        actor.calculate_entropy |= self._has_bonus
        self._coefficients = Coefficients(self.method, config.data.max_response_length)
        self._epochs, actor.ppo_epochs = actor.ppo_epochs, 1  # the driver goes through the mini-batches itself
        self._rows_per_update = actor.ppo_mini_batch_size * config.actor_rollout_ref.rollout.n
        self._mini_batches: list[Any] = []
        self.rows: StepRows | None = None
        self.decision: Decision | None = None

    def _init_resource_pool_mgr(self) -> None:
        """Workers whose actor takes coefficients."""
        import ray
        from verl.trainer.ppo.utils import Role

        from vcpo_bench.adapters.verl.worker import actor_worker_class

        parent: Any = super()
        parent._init_resource_pool_mgr()
        me: Any = self
        for role in (Role.ActorRollout, Role.ActorRolloutRef):
            if role in me.role_worker_mapping:
                me.role_worker_mapping[role] = ray.remote(actor_worker_class())

    # -- one step, as verl goes through it ---------------------------------------------------------------------------

    def _balance_batch(self, batch: Any, metrics: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Whole prompts for every optimizer step, each balanced over the ranks by verl."""
        parent: Any = super()
        refuse_several_outputs(batch.keys)
        cut = places_of_whole_prompts(batch.keys, self._rows_per_update)
        logs: list[dict[str, Any]] = [{} for _ in cut]
        parts = [select(batch, places) for places in cut]
        self._mini_batches = [
            parent._balance_batch(part, log, *args, **kwargs) for part, log in zip(parts, logs, strict=True)
        ]
        metrics.update(_reduced(logs))
        return join(self._mini_batches)

    def _compute_old_log_prob(self, batch: Any, metrics: dict[str, Any]) -> Any:
        """Scores under the current weights; verl keeps them as `old_log_probs`."""
        batch.extra_info["calculate_sum_pi_squared"] = "sum_pi_sq" in self._needs
        batch.extra_info[SCORE_NORMS] = "score_norm_sq" in self._needs
        parent: Any = super()
        parent._compute_old_log_prob(batch, metrics)
        batch.extra_info[SCORE_NORMS] = False
        if "sum_pi_sq" in self._needs:
            self._keep_squares(batch)
        return batch

    def _keep_squares(self, batch: Any) -> None:
        """Of the response alone, as verl does with log-probabilities and entropies."""
        from verl.workers.utils.padding import response_from_nested

        data = _get(batch, "sum_pi_squared", "response_mask")
        data["sum_pi_squared"] = response_from_nested(data["sum_pi_squared"], data["response_mask"])
        _put(batch, data.select("sum_pi_squared"))

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        """Nothing yet: the method decides before each optimizer step. What verl's log reads gets a value."""
        data = _get(batch, "response_mask", "rm_scores", "old_log_probs")
        nothing = data["rm_scores"] * 0.0
        kept = {"advantages": nothing, "returns": data["rm_scores"], COEFFICIENTS: nothing}
        if self._has_bonus:
            kept[ENTROPY_COEFFICIENTS] = nothing
        if "proximal_logp" in self._needs:
            kept[PROXIMAL] = data["old_log_probs"]
        for name, value in kept.items():
            data[name] = value
        _put(batch, data.select(*kept))
        return batch

    def _update_actor(self, batch: Any, metrics: dict[str, Any]) -> Any:
        """All optimizer steps of this batch."""
        updates = len(self._mini_batches) * self._epochs
        logs: list[dict[str, Any]] = []
        for number in range(updates):
            part = self._mini_batches[number % len(self._mini_batches)]
            part.extra_info.update(batch.extra_info)
            logs.append(self._update(part, number, updates))
        metrics.update(_reduced(logs))
        return batch

    # -- one optimizer step ------------------------------------------------------------------------------------------

    def _update(self, part: Any, number: int, updates: int) -> dict[str, Any]:
        parent: Any = super()
        metrics: dict[str, Any] = {}
        if number:  # the weights are not those any more that scored the batch
            self._compute_old_log_prob(part, {})
        self.rows, mask = read_rows(part, self._needs, updates * self.parameter_sync_step)
        now = ((self.global_steps - 1) * self.parameter_sync_step + self.local_trigger_step) * updates + number
        self.decision = self._coefficients.decide(self.rows, now)
        self._gauges.attempt(partial(self._watch, self.rows, metrics))
        self._hand_out(part, self.decision, mask)
        part.extra_info.update(
            {
                STEP_SCALE: self.decision.step_scale,
                SKIP: bool(self.decision.skipped),
                LAST: number == updates - 1,
                "calculate_sum_pi_squared": False,
            }
        )
        parent._update_actor(part, metrics)
        metrics.update(_numbers(self.rows, self.decision, now))
        return metrics

    def _hand_out(self, part: Any, decision: Decision, mask: Tensor) -> None:
        """Store the coefficients with their rows; verl's log shows them as advantages."""
        data = _get(part, "response_mask")
        data[COEFFICIENTS] = nested_like(decision.coefficients, mask)
        data["advantages"] = data[COEFFICIENTS]
        names = [COEFFICIENTS, "advantages"]
        bonus = decision.entropy_coefficients
        if bonus is not None:
            data[ENTROPY_COEFFICIENTS] = nested_like(bonus, mask)
            names.append(ENTROPY_COEFFICIENTS)
        _put(part, data.select(*names))

    # -- checkpoints -------------------------------------------------------------------------------------------------

    def _save_checkpoint(self) -> None:
        """The method's state goes first: a checkpoint that verl calls the latest is whole."""
        checkpoint.write(self._folder(), 0, {"coefficients": self._coefficients.state_dict()})
        super()._save_checkpoint()

    def _load_checkpoint(self) -> None:
        super()._load_checkpoint()
        if self.global_steps:
            saved = checkpoint.read(self._folder(resuming=True), 0)
            self._coefficients.load_state_dict(saved["coefficients"])


def _get(batch: Any, *fields: str) -> Any:
    import transfer_queue as tq

    return tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=list(fields))


def _put(batch: Any, fields: Any) -> None:
    import transfer_queue as tq

    tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=fields)


def _numbers(rows: StepRows, decision: Decision, now: int) -> dict[str, float]:
    """What one optimizer step puts into the log beside verl's entries and the gauges."""
    lag = (now - rows.version[~rows.reward.isnan()]).float()
    measured = {
        **decision.metrics,
        "step_scale": decision.step_scale,
        "step_skipped": float(bool(decision.skipped)),
    }
    shares: dict[str, float] = {}
    if len(lag):
        measured |= {"lag_mean": float(lag.mean()), "lag_max": float(lag.max())}
        shares = {f"{LAG_SHARE}{int(one)}": float((lag == one).float().mean()) for one in set(lag.tolist())}
    return {f"{LOGGED}{name}": value for name, value in measured.items()} | shares


def _reduced(logs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One entry per name, by verl's rule: a name with max or min in it is that, all others are averaged.

    The share of a lag that an optimizer step does not have is 0 there.
    """
    from verl.utils.metric import reduce_metrics

    shares = {name: 0.0 for log in logs for name in log if name.startswith(LAG_SHARE)}
    whole = [shares | log for log in logs]
    names = list(dict.fromkeys(name for log in logs for name in log))
    reduced: dict[str, Any] = reduce_metrics({name: [log[name] for log in whole if name in log] for name in names})
    return reduced
