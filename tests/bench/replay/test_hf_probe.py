"""The estimator probe on runs that trained a language model: the learner's own updates, and sums done by hand."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import hf_models
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from command_line import refused

from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.replay.probe import ProbeSpec, check_probe, command, run_probe, spec
from vcpo_bench.bench.replay.probe.updates import Estimators
from vcpo_bench.bench.replay.recorded_cell import RecordedCell
from vcpo_bench.bench.replay.replay import Replay
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.learner_step import GRAD_CLIP
from vcpo_bench.bench.training.micro_batches import cut
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import parse_method
from vcpo_bench.reports.terminal.probe_table import read_probe

AT, LAG = 5, 2
KEEP_EVERY = 0
Recorded = Callable[..., RecordedCell]


def reward(text: str) -> float:
    """Something they can learn at once, so that updates have a direction."""
    return sum(ord(c) % 2 for c in text) / max(1, len(text))


def asked(cell: RecordedCell, methods: str, n: int = 8) -> ProbeSpec:
    return ProbeSpec(cell, [AT], [parse_method(text) for text in methods.split(";")], n, n)


@pytest.mark.parametrize(
    ("method", "regime", "more"),
    [
        ("vcpo", "fifo", {}),
        ("clip+ess(base=measured)", "fifo(engine_noise=bf16)", {}),
        ("clip+kl(anchor=reference)", "fifo", {"lora": 2, "micro_tokens": 60, "checkpointing": True}),
        ("vespo", "fifo", {"lora": 2, "dtype": "bfloat16"}),
    ],
)
def test_with_the_runs_own_batch_the_probe_sees_the_runs_own_update(
    recorded_model: Recorded, monkeypatch: pytest.MonkeyPatch, method: str, regime: str, more: dict[str, Any]
) -> None:
    cell = recorded_model(method, regime, **more)
    wanted = asked(cell, method)
    assert check_probe(wanted) == {AT: AT - LAG}
    monkeypatch.setattr(command, "_STALE", AT)  # the first batch then is the one that the run consumed
    replay = Replay(cell, AT - LAG)
    replay.to(AT, keep={AT - LAG})
    before = {name: tensor.clone() for name, tensor in replay.trainer.policy.trained_state().items()}
    point = command._point(wanted, replay, AT - LAG)
    after = replay.trainer.policy.trained_state()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    own = replay.trainer.source.next_batch(AT).batch
    assert torch.equal(own.responses, point.stale[0].responses)
    assert torch.equal(own.behavior_logp, point.stale[0].behavior_logp)
    (found,) = point.estimators(wanted.methods).updates(point.stale[:2], AT)
    assert found.gradients.shape[1] == sum(tensor.numel() for tensor in before.values())
    steps = pq.read_table(cell.folder / "steps.parquet").to_pydict()
    assert float(found.gradients[0].norm()) == pytest.approx(steps["grad_norm"][AT], rel=1e-4)
    assert found.scales[0] == pytest.approx(steps["step_scale"][AT], rel=1e-4)
    assert not torch.equal(found.gradients[0], found.gradients[1])


def test_updates_do_not_depend_on_micro_batches(recorded_model: Recorded) -> None:
    replay = Replay(recorded_model(), AT)
    replay.to(AT)
    batch = replay.trainer.source.next_batch(AT).batch
    assert len(cut(batch, tokens=50)) > 1
    methods = [parse_method(text) for text in ("vcpo", "clip+entropy", "clip+kl(anchor=reference)", "kl-cov")]
    policy = replay.trainer.policy
    whole, cut_up = (
        Estimators(policy, methods, lambda: copy.deepcopy(policy), micro_tokens=tokens).updates([batch], AT)
        for tokens in (0, 50)
    )
    for first, second in zip(whole, cut_up, strict=True):
        assert float(first.gradients.norm()) > 0
        torch.testing.assert_close(first.gradients, second.gradients, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(first.scales, second.scales, rtol=1e-4)


class Sample(NamedTuple):
    """A batch drawn and scored by hand: rewards [P, G], and for each row prompt, response and log-probabilities."""

    reward: np.ndarray
    rows: list[tuple[list[int], list[int], np.ndarray]]


def draw(trainer: Trainer, policy: CausalPolicy, index: int) -> Sample:
    task, config = trainer.task, trainer.config
    prompts = task.training_prompts(config.seed, index, config.prompts)
    count = config.prompts * config.responses
    noise = torch.from_numpy(uniforms(config.seed, "sampling", index, count, task.max_response))
    rollout = policy.sample(Draw(prompts, noise, task.eos))
    reward = task.reward(prompts, rollout.responses, rollout.mask).view(config.prompts, config.responses)
    rows = []
    for i in range(count):
        prompt = [token for token in prompts[i // config.responses].tolist() if token != hf_models.PAD]
        kept = rollout.mask[i]
        rows.append((prompt, rollout.responses[i][kept].tolist(), rollout.logp[i][kept].double().numpy()))
    return Sample(reward.numpy(), rows)


def gradient(policy: CausalPolicy, sample: Sample, kind: str, longest: int) -> np.ndarray:
    """The update [D] of one batch, from the network's own logits of each sequence alone."""
    R = sample.reward
    spread = R.std(1, keepdims=True)
    advantage = np.divide(R - R.mean(1, keepdims=True), spread, out=np.zeros_like(R), where=spread > 1e-6)
    if kind == "truth":
        advantage = R - (R.sum(1, keepdims=True) - R) / (R.shape[1] - 1)
    loss = torch.zeros(())
    for (prompt, response, behavior), a in zip(sample.rows, advantage.ravel(), strict=True):
        logits = policy.network(torch.tensor([prompt + response])).logits[0, len(prompt) - 1 : -1]
        logp = logits.log_softmax(1).gather(1, torch.tensor(response).unsqueeze(1)).squeeze(1)
        ratio = np.exp((logp.detach().double().numpy() - behavior).sum()) if kind == "tis" else 1.0
        length = longest if kind == "truth" else len(response)
        loss = loss - float(a) * min(ratio, 8.0) / length / R.size * logp.sum()
    return np.concatenate([g.flatten().double().numpy() for g in torch.autograd.grad(loss, policy.trainable())])


def by_hand(updates: np.ndarray, truth: np.ndarray, away: np.ndarray) -> dict[str, float]:
    """Quantities of updates [n, D] and estimates of the true gradient [N, D], by summing over pairs."""
    pairs = [(i, j) for i in range(len(updates)) for j in range(len(updates)) if i != j]
    signal = float(np.mean([updates[i] @ updates[j] for i, j in pairs]))
    length = float(np.mean([truth[i] @ truth[j] for i, j in pairs]))
    along = float(updates.mean(0) @ truth.mean(0))
    variance = float(np.mean([u @ u for u in updates])) - signal
    with np.errstate(divide="ignore"):
        back = updates.mean(0) @ away / (max(signal, 0.0) ** 0.5 * np.linalg.norm(away))
    return {
        "signal_sq": signal,
        "variance": variance,
        "snr": signal / variance,
        "gain": along / length,
        "bias_sq": (signal - 2 * along + length) / length,
        "cosine_back": float(np.clip(back, -1.0, 1.0)),
    }


def diagonal(trainer: Trainer) -> np.ndarray:
    """What AdamW multiplies a gradient by."""
    states = [trainer.learner.optimizer.state[parameter] for parameter in trainer.policy.trainable()]
    moments = [s["exp_avg_sq"].double().flatten().numpy() / (1 - 0.999 ** float(s["step"])) for s in states]
    return np.concatenate([1 / (np.sqrt(moment) + 1e-8) for moment in moments])


def flat(policy: CausalPolicy) -> np.ndarray:
    return np.concatenate([p.detach().double().flatten().numpy() for p in policy.trainable()])


@pytest.mark.parametrize("more", [{}, {"lora": 2}])
def test_the_table_holds_what_sums_by_hand_give(recorded_model: Recorded, tmp_path: Path, more: dict[str, int]) -> None:
    cell, n = recorded_model(**more), 8
    run_probe(asked(cell, "tis;reinforce", n), tmp_path / "p.csv", lambda _: None)
    trainer = build_trainer(cell.config, start=cell.start)
    for _ in range(AT - LAG):
        trainer.advance()
    old = copy.deepcopy(trainer.policy)
    for _ in range(LAG):
        trainer.advance()
    now = trainer.policy
    assert isinstance(old, CausalPolicy)
    assert isinstance(now, CausalPolicy)
    samples = {
        name: [draw(trainer, policy, first * 10**9 + i) for i in range(n)]
        for first, name, policy in ((1, "stale", old), (2, "fresh", now), (3, "control", now))
    }
    longest, away, by = trainer.task.max_response, flat(now) - flat(old), diagonal(trainer)
    truth = np.stack([gradient(now, sample, "truth", longest) for sample in samples["fresh"]])
    table = read_probe(tmp_path / "p.csv").set_index(["method", "lag", "preconditioned", "quantity"])["value"]
    for method, lag in (("tis", LAG), ("reinforce", LAG), ("reinforce", 0)):
        batches = samples["stale" if lag else "control"]
        updates = np.stack([gradient(now, sample, method, longest) for sample in batches])
        clipped = updates * np.minimum(1.0, GRAD_CLIP / np.linalg.norm(updates, axis=1, keepdims=True))
        compare(table, (method, lag, False), by_hand(updates, truth, away))
        compare(table, (method, lag, True), by_hand(clipped * by, truth * by, away))


def compare(table: pd.Series, row: tuple[str, int, bool], wanted: dict[str, float]) -> None:
    for name, value in wanted.items():
        if name == "cosine_back" and not row[1]:
            continue
        near = {"signal_sq": 1e-3 * wanted["variance"], "snr": 1e-3}.get(name, 0.0)  # differences of large numbers
        assert table[(*row, name)] == pytest.approx(value, rel=5e-3, abs=near), (row, name)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "name its folder with --model"),
        (("--model", "{other}"), "its files differ from those the cell started from"),
        (("--model", "{new}"), "no such folder"),
        (("--model", "{model}", "--start", "{model}/config.json"), "which starts from --model"),
        (("--model", "{model}", "--device", "cuda"), "was recorded on cpu"),
        (("--model", "{model}", "--device", "tpu"), "choose cpu, cuda or cuda:N"),
    ],
)
@pytest.mark.parametrize("command_line", ["probe", "fork"])
def test_bad_input_is_one_clear_line(
    recorded_model: Recorded, tmp_path: Path, model: Path, command_line: str, flags: tuple[str, ...], said: str
) -> None:
    other = hf_models.save(tmp_path / "other", seed=1)
    places = {"other": other, "model": model, "new": tmp_path / "new"}
    out = tmp_path / ("new.csv" if command_line == "probe" else "new")
    arguments = ["lab", command_line, recorded_model().folder, "--at", "4", "--methods", "tis", "--out", out]
    assert said in refused(*arguments, *(flag.format(**places) for flag in flags))
    assert not (tmp_path / "new").exists()


def test_a_truncating_sampler_is_refused_since_its_samples_have_another_mean(recorded_model: Recorded) -> None:
    cell = recorded_model(sampler="torch(top_p=0.9,truncate=allow)")
    with pytest.raises(UsageError, match="truncated distribution"):
        check_probe(asked(cell, "tis"))


def test_gradients_that_no_memory_holds_are_refused_before_the_replay(
    recorded_model: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = recorded_model()
    trained = sum(p.numel() for p in hf_models.network("llama").parameters())
    needed = 4 * trained * (8 + 2 * 8)
    said: list[str] = []
    monkeypatch.setattr(spec, "main_memory", lambda: needed - 1)
    with pytest.raises(UsageError, match=f"24 gradients of {trained} trained parameters"):
        run_probe(asked(cell, "tis;clip"), tmp_path / "p.csv", said.append)
    assert not said
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(spec, "main_memory", lambda: needed)
    spec.check_memory(asked(cell, "tis;clip"), trained)
