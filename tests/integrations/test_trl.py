"""Methods in the real TRL: resume, exact lag, LoRA, and what is refused; gradients are in `test_trl_gradients.py`."""

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("trl", reason="runs in .ci/integrations trl")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from transformers import TrainerCallback
from trl import GRPOTrainer
from trl_runs import config, model, prompts, saved_model, share_of_digits, trainer

from vcpo_bench.adapters.trl import with_method
from vcpo_bench.errors import UsageError


class Keep(TrainerCallback):  # type: ignore[misc]
    """Keeps the weights before every update, and what it was given."""

    def __init__(self, run: Any) -> None:
        self.run, self.weights, self.windows = run, [], []
        run.add_callback(self)

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.weights.append({name: value.clone() for name, value in self.run.model.state_dict().items()})

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.windows.append([dict(samples) for samples in self.run._buffered_inputs])


def final(run: Any) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in run.model.state_dict().items()}


@pytest.mark.parametrize(
    ("method", "lag", "changes"),
    [
        ("clip+ess(base=measured)", "fifo(2)", {"data": prompts(8)}),
        ("gac", "fifo(0)", {}),
        ("decoupled", "fifo(0)", {"num_iterations": 2}),
        ("vcpo", "fifo(1)", {}),
    ],
)
def test_resume_is_bit_exact(tmp_path: Path, method: str, lag: str, changes: dict[str, Any]) -> None:
    whole = trainer(
        tmp_path, method, lag, max_steps=6, save_strategy="steps", save_steps=3, learning_rate=1e-2, **changes
    )
    whole.train()
    resumed = trainer(
        tmp_path, method, lag, max_steps=6, save_strategy="no", learning_rate=1e-2, model=model(seed=9), **changes
    )
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert resumed.state.global_step == 6
    wanted, got = final(whole), final(resumed)
    assert all(torch.equal(got[name], value) for name, value in wanted.items())
    with pytest.raises(UsageError, match="was written with"):
        trainer(tmp_path, "vespo", lag, max_steps=6, **changes).train(
            resume_from_checkpoint=str(tmp_path / "checkpoint-3")
        )


def test_a_checkpoint_is_whole_before_older_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = []
    monkeypatch.setattr(
        "transformers.trainer.rotate_checkpoints",
        lambda *given, **named: whole.append((tmp_path / "checkpoint-1" / "vcpo_bench_rank0.pt").is_file()),
    )
    trainer(tmp_path, "tis", max_steps=1, save_strategy="steps", save_steps=1, save_total_limit=1).train()
    assert whole == [True]


def test_lag_is_exact(tmp_path: Path) -> None:
    run = trainer(tmp_path, "tis", "fifo(3)", max_steps=8, learning_rate=1e-2, data=prompts(16))
    kept = Keep(run)
    run.train()
    plain = trainer(tmp_path, "tis", max_steps=8, data=prompts(16))
    order = Keep(plain)
    plain.train()
    scorer = run._scorer
    for update, window in enumerate(kept.windows):
        run.model.load_state_dict(kept.weights[max(update - 3, 0)])
        for samples in window:
            assert samples["vcpo_bench_version"].unique().tolist() == [max(update - 3, 0)]
            mask = samples["completion_mask"].bool()
            sampled = scorer.logp(samples, 4)
            assert torch.allclose(sampled[mask], samples["vcpo_bench_behavior"][mask], atol=1e-6)
        asked = {tuple(row) for samples in window for row in samples["prompt_ids"].tolist()}
        assert asked == {tuple(row) for samples in order.windows[update] for row in samples["prompt_ids"].tolist()}
    lags = [entry["vcpo_bench/lag_max"] for entry in run.state.log_history if "vcpo_bench/lag_max" in entry]
    assert lags == [0, 1, 2, 3, 3, 3, 3, 3]
    assert run.state.log_history[5]["vcpo_bench/ess_ratio"] < 0.999


@pytest.mark.parametrize("windows", [1, 2])
def test_prompts_stay_whole_in_every_optimizer_step(tmp_path: Path, windows: int) -> None:
    run = trainer(tmp_path, "vcpo(baseline=group)", max_steps=4, steps_per_generation=4 * windows, save_strategy="no")
    seen = []

    class Watch(TrainerCallback):  # type: ignore[misc]
        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            seen.append(run.rows.group.tolist())

    run.add_callback(Watch())
    run.train()
    assert len(seen) == 4
    for groups in seen:
        assert {groups.count(group) for group in groups} == {4}
    later = [group for groups in seen[windows:] for group in groups]
    assert not set(later) & {group for groups in seen[:windows] for group in groups}


def test_on_policy_it_is_trls_own_loss(tmp_path: Path) -> None:
    after = []
    for method in ("clip+grpo(eps=1e-4,std=sample)+token-mean", None):
        run = trainer(tmp_path, method, max_steps=3)
        run.train()
        after.append(final(run))
    for name, value in after[1].items():
        torch.testing.assert_close(after[0][name], value, rtol=1e-4, atol=1e-5)


def test_lora_trains_the_adapters_alone(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason="runs in .ci/integrations trl")
    settings = {"r": 2, "target_modules": ["q_proj", "v_proj"], "lora_dropout": 0.1, "task_type": "CAUSAL_LM"}
    for method in ("vcpo", "vespo+otb", "snis"):
        run = trainer(
            tmp_path, method, "fifo(2)", max_steps=4, learning_rate=1e-2, peft_config=peft.LoraConfig(**settings)
        )
        before = final(run)
        run.train()
        moved = {name for name, value in final(run).items() if not torch.equal(before[name], value)}
        assert moved
        assert all("lora_" in name for name in moved)
        scales = [entry["vcpo_bench/step_scale"] for entry in run.state.log_history[:4]]
        assert (min(scales) < 1) == (method == "vcpo")


class Engine(GRPOTrainer):  # type: ignore[misc]
    """Reports log-probabilities as vLLM does, one of them unknown."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        samples = super()._generate_and_score_completions(inputs)
        samples["sampling_per_token_logps"] = torch.full(samples["completion_ids"].shape, -0.5)
        samples["sampling_per_token_logps"][0, 0] = torch.nan
        return samples


def test_log_probabilities_of_the_sampling_engine_are_used(tmp_path: Path) -> None:
    run = trainer(tmp_path, "tis", base=Engine, max_steps=1)
    kept = Keep(run)
    run.train()
    behavior = torch.cat([samples["vcpo_bench_behavior"].flatten() for samples in kept.windows[0]])
    assert torch.isfinite(behavior).all()
    assert int((behavior != -0.5).sum()) == 1
    assert run.state.log_history[0]["vcpo_bench/unreported_logps"] == 1


def test_a_step_that_is_not_finite_is_left_out(tmp_path: Path) -> None:
    class Broken(GRPOTrainer):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            samples = super()._generate_and_score_completions(inputs)
            if self.state.global_step == 1:
                samples["sampling_per_token_logps"] = torch.full(samples["completion_ids"].shape, torch.inf)
            return samples

    run = trainer(tmp_path, "tis", base=Broken, max_steps=3, learning_rate=1e-2)
    kept = Keep(run)
    run.train()
    steps = itertools.pairwise([*kept.weights, final(run)])
    assert [all(torch.equal(a[name], b[name]) for name in a) for a, b in steps] == [False, True, False]
    assert [entry["vcpo_bench/step_skipped"] for entry in run.state.log_history[:3]] == [0, 1, 0]
    assert [entry["learning_rate"] for entry in run.state.log_history[:3]] == [1e-2] * 3


def test_rows_without_a_reward_count_nowhere(tmp_path: Path) -> None:
    def sometimes(completions: list[str], **others: Any) -> list[float | None]:
        return [None if place % 5 == 0 else value for place, value in enumerate(share_of_digits(completions))]

    run = trainer(tmp_path, "vcpo", max_steps=1, reward=sometimes)
    run.train()
    unjudged = torch.isnan(run.rows.reward)
    assert 0 < int(unjudged.sum()) < len(unjudged)
    assert run.decision.coefficients[unjudged].abs().max() == 0
    assert run.decision.coefficients[~unjudged].abs().max() > 0


@pytest.mark.parametrize(("method", "lag"), [("vcpo", "fifo(0)"), ("vespo", "fifo(4)")])
def test_a_run_learns(tmp_path: Path, method: str, lag: str) -> None:
    run = trainer(tmp_path, method, lag, max_steps=40, learning_rate=1e-2)
    run.train()
    rewards = [entry["reward"] for entry in run.state.log_history if "reward" in entry]
    assert sum(rewards[-5:]) / 5 > sum(rewards[:5]) / 5 + 0.3


def test_a_second_run_samples_anew(tmp_path: Path) -> None:
    run = trainer(tmp_path, "tis", "fifo(2)", max_steps=3)
    run.train()
    run.train()
    lags = [entry["vcpo_bench/lag_max"] for entry in run.state.log_history if "vcpo_bench/lag_max" in entry]
    assert lags == [0, 1, 2]


def test_evaluation_is_trls(tmp_path: Path) -> None:
    run = trainer(tmp_path, "vcpo", "fifo(2)", max_steps=2)
    run.train()
    metrics = run.evaluate(prompts(8))
    assert "eval_reward" in metrics


SPLIT = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 2, "steps_per_generation": 4}
"""Two optimizer steps share a generation, and each has half of a prompt's responses."""


@pytest.mark.parametrize(
    ("method", "lag", "changes", "reason"),
    [
        ("vcpo", "fifo(0)", {"steps_per_generation": 6}, "is not a multiple of"),
        ("vcpo", "fifo(0)", SPLIT, "do not hold whole groups of 4"),
        ("tis", "fifo(2)", {"num_iterations": 2}, "one optimizer step per generation"),
        ("tis", "fifo(2)", {"steps_per_generation": 8}, "one optimizer step per generation"),
        ("decoupled", "fifo(0)", {}, "needs a proximal policy"),
        ("tba(anchor=reference)", "fifo(0)", {}, "needs a reference policy"),
        ("tis", "fifo(0)", {"beta": 0.1}, "beta=0.1 belongs to the loss it replaces"),
        ("tis", "fifo(0)", {"entropy_coef": 0.1}, "entropy_coef"),
        ("tis", "fifo(0)", {"top_entropy_quantile": 0.5}, "top_entropy_quantile"),
        ("tis", "fifo(0)", {"off_policy_mask_threshold": 0.5}, "off_policy_mask_threshold"),
        ("tis", "fifo(0)", {"multi_objective_aggregation": "normalize_then_sum"}, "one number per response"),
        ("clip+score-centering", "fifo(0)", {}, "whole distributions"),
        ("clip+lr-matched", "fifo(0)", {}, "borrows the step scales"),
        ("clip+gap-aware", "fifo(0)", {}, "how far the weights have moved"),
        ("clip+dc-asgd", "fifo(0)", {}, "how far the weights have moved"),
    ],
)
def test_refused_before_the_first_step(
    tmp_path: Path, method: str, lag: str, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        trainer(tmp_path, method, lag, model=saved_model(tmp_path), **changes)


def test_a_reference_policy_is_used_where_trl_loads_one(tmp_path: Path) -> None:
    method = "reinforce+kl(anchor=reference,beta=0.5)"
    run = trainer(tmp_path, method, max_steps=2, beta=1e-6, learning_rate=1e-2, model=saved_model(tmp_path))
    run.train()
    assert run.rows.reference_logp is not None
    assert not torch.equal(run.rows.reference_logp, run.rows.logp)


def test_norms_that_are_impossible_are_refused_with_an_offer(tmp_path: Path) -> None:
    made = model()
    made.model.norm = torch.nn.Sequential(torch.nn.BatchNorm1d(16))
    with pytest.raises(UsageError, match=r"exact score norms are impossible.*\+otb.*baseline=group"):
        trainer(tmp_path, "vcpo", model=made)


def test_other_trainers_and_wrong_words_are_refused() -> None:
    class AsyncGRPOTrainer:
        pass

    with pytest.raises(UsageError, match="without the other responses to a prompt"):
        with_method(AsyncGRPOTrainer, "vcpo")
    with pytest.raises(UsageError, match=r"takes trl.GRPOTrainer or a subclass of it, not dict"):
        with_method(dict, "vcpo")
    with pytest.raises(UsageError, match="carries a method already"):
        with_method(with_method(GRPOTrainer, "vcpo"), "vespo")
    with pytest.raises(UsageError, match="vcpo"):
        with_method(GRPOTrainer, "vcpoo")
    with pytest.raises(UsageError, match=r"write fifo\(k\)"):
        with_method(GRPOTrainer, "vcpo", "inflight(2)")


def test_truncated_sampling_is_warned_of(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="top_p: responses are not drawn from"):
        trainer(tmp_path, "tis", top_p=0.9)


def test_the_configuration_is_left_alone(tmp_path: Path) -> None:
    made = config(tmp_path)
    plain = trainer(tmp_path, None)
    assert trainer(tmp_path, "vcpo").args.to_dict() == plain.args.to_dict()
    assert made.to_dict().keys() == plain.args.to_dict().keys()
