"""Truncation in training: what the docs say of top-p 0.8, its replay in every way a batch reaches the learner."""

import re
from pathlib import Path

import pytest
import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.samplers.catalog import SAMPLERS, SamplingJob
from vcpo_bench.bench.stack.eligible import why_not_stacked
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.errors import UsageError

PAGE = Path(__file__).parents[3] / "docs" / "staleness.md"


def trainer(regime: str, staleness: int = 0, **more: object) -> Trainer:
    config = {"task": "walk", "method": "clip", "prompts": 4, "responses": 4, "steps": 3, "eval_every": 100} | more
    return build_trainer(CellConfig(regime=regime, staleness=staleness, seed=1, **config))  # type: ignore[arg-type]


def ratios(subject: Trainer, update: int = 0) -> torch.Tensor:
    batch = subject.source.next_batch(update).batch
    return (subject.learner.logp(batch) - batch.behavior_logp)[batch.mask].double().exp()


def test_the_page_says_what_truncation_does_to_the_ratio() -> None:
    found = ratios(trainer("fifo(top_p=0.8)", prompts=32, responses=16))
    outside = float(((found < 0.9) | (found > 1.1)).double().mean())
    said = re.search(r"mean ratio is (0\.\d+) and (\d+)% of the\s+tokens lie outside", PAGE.read_text())
    assert said is not None
    assert said.groups() == (f"{float(found.mean()):.3f}", f"{outside:.0%}".rstrip("%"))
    assert found.min() > 0.8 - 1e-6


@pytest.mark.parametrize("noise", ["", "engine_noise=bf16,"])
@pytest.mark.parametrize("task", ["walk", "walk-eos", "lookup"])
def test_with_replay_the_ratio_at_lag_zero_is_one(task: str, noise: str) -> None:
    found = ratios(trainer(f"fifo({noise}mask_replay=on,top_p=0.8)", task=task))
    torch.testing.assert_close(found, torch.ones_like(found), rtol=0, atol=5e-2 if noise else 1e-5)


@pytest.mark.parametrize(
    "regime", ["inflight(cache=recompute,{})", "random({},unit=trajectory)", "async(clock=virtual,{})"]
)
def test_sets_reach_the_learner_in_every_regime(regime: str) -> None:
    subject = trainer(
        regime.format("mask_replay=on,top_p=0.8"), 2, lr=1e-12
    )  # weights that hardly move: lag changes nothing
    for update in range(3):
        found = ratios(subject, update)
        torch.testing.assert_close(found, torch.ones_like(found), rtol=0, atol=1e-5)
    subject.close()


def test_a_method_that_asks_for_score_norms_trains_under_replay() -> None:
    subject = trainer("fifo(mask_replay=on,top_k=3)", 1, method="vcpo", record="full")
    for _ in range(3):
        subject.advance()
    assert subject.status == "completed"
    assert all(p.isfinite().all() for p in subject.policy.parameters())


def test_it_is_not_stacked() -> None:
    cell = CellConfig(method="clip", staleness=1, seed=0, regime="fifo(top_k=3)")
    assert "truncates distributions" in why_not_stacked(cell)


def test_sampler_and_regime_do_not_both_truncate() -> None:
    job = SamplingJob(3, 4, 8, False, 1, False, "fifo(top_k=3)", truncated=True)
    policy = trainer("fifo").policy
    assert SAMPLERS.parse("torch").open(policy, job) is None
    for sampler, words in (
        ("torch(top_p=0.9,truncate=allow)", "both truncate"),
        ("vllm", "from the whole distribution"),
    ):
        with pytest.raises(UsageError, match=words):
            SAMPLERS.parse(sampler).open(policy, job)
