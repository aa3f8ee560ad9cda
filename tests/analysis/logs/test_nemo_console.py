"""The console of NeMo-RL: steps within an epoch, evaluations, and what must not become a resume."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from vcpo_bench.analysis.logs import read_run

BAR = "=" * 25


def printed(epochs: int, per_epoch: int, first: int = 1, headed: bool = True) -> Iterator[str]:
    """What it prints from a step of the run on; an evaluation every fifth step."""
    for t in range(first, epochs * per_epoch + 1):
        epoch, step = divmod(t - 1, per_epoch)
        if headed and (step == 0 or t == first):
            yield f"\n{BAR} Epoch {epoch + 1}/{epochs} {BAR}"
        count = f"{step + 1}/{per_epoch}" if headed else f"{t}/{epochs * per_epoch}"
        yield f"\n{BAR} Step {count} {BAR}\n▶ Preparing batch...\n▶ Training policy..."
        if t % 5 == 0:
            yield evaluated(t, 0.3 + t / 1000)
        yield "\n📊 Training Results:\n  • Loss: 0.0300\n  • Generation KL Error: 0.0030"
        yield f"  • Avg Reward: {t / 1000:.4f}\n  • Mean Generation Length: 203.2197\n"
        yield "⏱️  Timing:\n  • Total step time: 35.70s\n"


def evaluated(step: int, accuracy: float) -> str:
    return (
        f"▶ Starting validation at step {step}...\n\n📊 Validation Results:\n    • Accuracy: {accuracy:.4f}\n"
        "    • Average response length: 205.1 tokens\n    • Samples processed: 256\n\n  ⏱️  Validation Timing:\n"
        "    • Total validation time: 33.00s"
    )


@pytest.mark.parametrize(("epochs", "headed"), [(1, True), (2, True), (4, True), (4, False)])
def test_epochs_are_one_run_with_steps_that_go_on(tmp_path: Path, epochs: int, headed: bool) -> None:
    log = tmp_path / "train.log"
    log.write_text("\n".join(printed(epochs, 40 // epochs, headed=headed)))
    run = read_run(log)
    assert run.framework == "nemo-rl"
    assert (run.resumes, run.overwritten) == ((), 0)
    steps = list(range(1, 41))
    assert run.series["reward"].steps.tolist() == steps
    assert run.series["reward"].values.tolist() == pytest.approx([t / 1000 for t in steps])
    assert run.series["eval_reward"].steps.tolist() == list(range(5, 41, 5))
    assert run.series["eval_reward"].values.tolist() == pytest.approx([0.3 + t / 1000 for t in range(5, 41, 5)])
    assert run.series["length_mean"].values.tolist() == [203.2197] * 40


def test_a_resume_within_an_epoch_is_one(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("\n".join([*printed(2, 20), *printed(3, 20, first=31)]))
    run = read_run(log)
    assert [(one.step, one.back_from) for one in run.resumes] == [(31, 40)]
    assert run.series["reward"].steps.tolist() == list(range(1, 61))


def test_the_evaluation_before_the_first_step_is_of_step_0(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("\n".join(["🔍 Running initial validation...", evaluated(0, 0.1), *printed(1, 10)]))
    series = read_run(log).series["eval_reward"]
    assert (series.steps.tolist(), series.values.tolist()) == ([0, 5, 10], [0.1, 0.305, 0.31])
