"""The real lm-eval on the built-in tiny policy: exact scores, our tasks and others, offline.

Runs in the environment that `.ci/integrations.d/evals.sh` builds; skipped where lm-eval is absent.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import torch
from patience import within

from vcpo_bench.bench.outside.lm_eval.evaluate import find_tasks
from vcpo_bench.bench.outside.lm_eval.token_text import TokenText
from vcpo_bench.bench.policies.seeded_network import PolicyConfig
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.policies.tiny.scoring import score
from vcpo_bench.bench.policies.warm_start import load_warm_start
from vcpo_bench.bench.tasks import token_task
from vcpo_bench.bench.trajectories import Responses
from vcpo_bench.errors import UsageError

pytest.importorskip("lm_eval", exc_type=ImportError, reason="runs in .ci/integrations evals")

from vcpo_bench.bench.outside.lm_eval.tiny_model import TinyPolicyLM


def ask(*arguments: Any) -> Any:
    return SimpleNamespace(args=arguments)


def embedded(expression: str) -> tuple[TinyPolicyLM, Any, TinyPolicy]:
    task = token_task(expression)
    policy = load_warm_start(task)
    return TinyPolicyLM(policy, TokenText(task.vocabulary), task.eos), task, policy


def slow_loglikelihood(policy: TinyPolicy, context: list[int], text: list[int]) -> tuple[float, bool]:
    """Token by token, one forward each."""
    total, greedy = 0.0, True
    for place, token in enumerate(text):
        with torch.inference_mode():
            logp = policy(torch.tensor([context + text[:place]]))[0, -1].log_softmax(-1)
        total, greedy = total + float(logp[token]), greedy and int(logp.argmax()) == token
    return total, greedy


@pytest.mark.parametrize("expression", ["chain", "walk-eos"])
def test_loglikelihoods_are_those_of_direct_scoring(expression: str) -> None:
    model, task, policy = embedded(expression)
    prompts, responses, mask = task.demonstrations(0, 0, 300)  # more than a chunk; walk-eos: of many lengths
    words = model.vocabulary
    texts = [words.decode(response[kept]) for response, kept in zip(responses, mask, strict=True)]
    requests = [ask(words.decode(prompt), text) for prompt, text in zip(prompts, texts, strict=True)]
    found = model.loglikelihood(requests)
    expected = score(policy, Responses(prompts, responses, mask)).logp.sum(1)
    assert torch.tensor([value for value, _ in found]) == pytest.approx(expected.detach(), abs=1e-4)
    for place in range(20):
        slow = slow_loglikelihood(policy, prompts[place].tolist(), responses[place][mask[place]].tolist())
        assert found[place] == (pytest.approx(slow[0], abs=1e-4), slow[1])
    greedy = model.generate_until([ask(words.decode(prompts[0]), {"until": []})])[0]
    if task.eos is None:
        assert model.loglikelihood([ask(words.decode(prompts[0]), greedy)])[0][1]


def test_rolling_loglikelihood_counts_each_token_once() -> None:
    policy = TinyPolicy(PolicyConfig(vocab_size=4, context=5), seed=1)
    text = "abcdabbacdda"
    numbers = ["abcd".index(letter) for letter in text]
    for eos in (3, None):
        model = TinyPolicyLM(policy, TokenText(list("abcd")), eos)
        chain = numbers if eos is None else [eos, *numbers]
        expected = 0.0
        for place in range(1, len(chain), 5):  # windows of five; the last one, too, sees as much as fits
            end = min(place + 5, len(chain))
            expected += slow_loglikelihood(policy, chain[max(0, end - 6) : place], chain[place:end])[0]
        assert model.loglikelihood_rolling([ask(text), ask("a")])[0] == pytest.approx(expected, abs=1e-5)
        short = slow_loglikelihood(policy, chain[:1], chain[1:4])[0]
        assert model.loglikelihood([ask("", text[: 3 + (eos is None)])])[0][0] == pytest.approx(short, abs=1e-5)
    with pytest.raises(UsageError, match="the policy sees 1 to 5"):
        model.loglikelihood([ask("abcd", "abc")])


def test_generation_stops_where_it_is_told() -> None:
    model, task, _ = embedded("walk-eos")
    prompts = [model.vocabulary.decode(prompt) for prompt in task.held_out(50)]
    whole = model.generate_until([ask(prompt, {"until": []}) for prompt in prompts])
    assert not any("." in text for text in whole)
    assert len({len(text) for text in whole}) > 3
    cut = model.generate_until([ask(prompt, {"until": ["7", "33"], "max_gen_toks": 6}) for prompt in prompts])
    assert cut == [text[:6].split("7")[0].split("33")[0] for text in whole]
    noise = [ask(prompts[0], {"until": [], "do_sample": True, "temperature": 1.0})] * 20
    sampled = model.generate_until(noise)
    assert len(set(sampled)) > 5
    assert sampled == model.generate_until(noise)
    for refused in ({"temperature": 0.5}, {"top_k": 5}, {"top_p": 0.9}):
        with pytest.raises(UsageError, match="temperature 1, untruncated"):
            model.generate_until([ask(prompts[0], {"until": [], "do_sample": True, "temperature": 1.0} | refused)])


def test_only_our_tasks_are_read_unless_another_is_named() -> None:
    (spec,), manager = find_tasks(["vcpo-chain"], None, {})
    assert spec["task"] == "vcpo-chain"
    assert not manager.all_tasks
    with pytest.raises(UsageError, match="vcpo-chian: lm-eval has no such task; besides its own there are vcpo-"):
        find_tasks(["vcpo-chian"], None, {})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cells of three tasks with checkpoints after 10 and 20 updates, made by the command."""
    out = tmp_path_factory.mktemp("trained") / "run"
    grid = ["--methods", "clip", "--staleness", "1", "--seeds", "1", "--task", "chain,walk,walk-eos", "--steps", "20"]
    small = ["--prompts", "4", "--responses", "4", "--no-controls", "--keep-checkpoints", "every=10", "--quiet"]
    command(out.parent, "run", *grid, *small, "--out", str(out))
    return out


def command(folder: Path, *arguments: str) -> str:
    """Run the command without any way out, in an empty home, and return what it prints."""
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    done = subprocess.run(
        [sys.executable, "-m", "vcpo_bench", *arguments],
        env={**kept, **nowhere, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=within(300),
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


def test_greedy_scores_equal_the_evaluations_of_the_run(trained: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (trained / "cells").rglob("*")}
    printed = command(trained.parent, "lab", "eval", str(trained), "--checkpoint", "all")
    assert {path: path.stat().st_mtime_ns for path in (trained / "cells").rglob("*")} == before
    compared = 0
    for cell in (trained / "cells").iterdir():
        name = json.loads((cell / "cell.json").read_text())["config"]["task"]
        evals = pd.read_parquet(cell / "evals.parquet").set_index("step")
        scores = pd.read_parquet(trained / "scores" / f"{cell.name}.parquet").set_index(["task", "metric", "step"])
        for step in (10, 20):
            score = scores.loc[(f"vcpo-{name}", "reward", step)]
            assert score["value"] == evals.loc[step, "greedy_reward"]
            assert score["n"] == 256
            sampled = scores.loc[(f"vcpo-{name}-sampled", "reward", step)]
            assert sampled["value"] == pytest.approx(evals.loc[step, "sampled_reward"], abs=0.15)
            assert scores.loc[(f"vcpo-{name}-sampled", "any_right", step), "value"] > sampled["value"]
            compared += 1
            assert f"{cell.name} after {step} updates" in printed
    assert compared == 6


def test_tasks_of_ones_own_are_scored_and_shown(trained: Path, tmp_path: Path) -> None:
    documents = tmp_path / "sums.jsonl"
    sums = [{"q": f"{a}{b}0000000000", "a": str((a + b) % 10)} for a in range(10) for b in range(10)]
    documents.write_text("\n".join(map(json.dumps, sums)))
    (tmp_path / "sums.yaml").write_text(
        f"task: second_sum\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: {documents}}}}}\n"
        'test_split: test\noutput_type: loglikelihood\ntarget_delimiter: ""\n'
        'doc_to_text: "{{q}}{{q[0]}}"\ndoc_to_target: "{{a}}"\n'
        "metric_list:\n  - {metric: acc, aggregation: mean, higher_is_better: true}\n"
        "  - {metric: perplexity, aggregation: perplexity, higher_is_better: false}\nmetadata: {version: 3}\n"
    )
    cell = next((trained / "cells").glob("chain-*"))
    arguments = ["lab", "eval", str(cell), "--tasks", "second_sum", "--tasks-from", str(tmp_path), "--limit", "50"]
    command(trained.parent, *arguments)
    scores = pd.read_parquet(trained / "scores" / f"{cell.name}.parquet")
    rows = scores[scores["task"] == "second_sum"].set_index("metric")
    assert rows["n"].tolist() == [50, 50]
    assert set(zip(rows["task_version"], rows["step"], rows["shots"], strict=True)) == {("3", 20, 0)}
    assert rows.loc["acc", "value"] > 0.9
    assert 1 <= rows.loc["perplexity", "value"] < 1.5
    assert rows.loc["perplexity", "stderr"] > 0
    assert not rows.loc["perplexity", "higher_is_better"]
    command(trained.parent, "report", str(trained))
    page = (trained / "report.html").read_text()
    assert "second_sum" in page
    assert "vcpo-walk-eos-sampled" in page
