"""The real lm-eval on a language model that a cell trained: the texts and numbers are those of the policy itself.

Runs in the environment that `.ci/integrations.d/evals.sh` builds; skipped where lm-eval or transformers is absent.
"""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import torch
from patience import within
from safetensors.torch import load_file, save_file

pytest.importorskip("lm_eval", exc_type=ImportError, reason="runs in .ci/integrations evals")
pytest.importorskip("transformers", exc_type=ImportError, reason="runs in .ci/integrations evals")

from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.outside.lm_eval.checkpoints import find_checkpoints
from vcpo_bench.bench.outside.lm_eval.evaluate import find_tasks
from vcpo_bench.bench.outside.lm_eval.hf_model import open_checkpoint
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.create import new_model
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.trajectories import Responses
from vcpo_bench.errors import UsageError
from vcpo_bench.files.checksums import read_sealed, write_sealed

CHAT = "{% for turn in messages %}Q{{ turn['content'] }}{% endfor %}{% if add_generation_prompt %}A{% endif %}"
RUN = ["--methods", "clip", "--staleness", "1", "--seeds", "1", "--task", "arithmetic", "--steps", "2", "--lr", "1e-2"]
RUN += ["--prompts", "2", "--responses", "2", "--max-response", "12", "--keep-checkpoints", "every=1"]


def command(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "vcpo_bench", *arguments],
        capture_output=True,
        text=True,
        timeout=within(300),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=["", CHAT], ids=["plain", "chat"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a language model from scratch and the results of a cell that trained it."""
    root = tmp_path_factory.mktemp("language")
    network, tokenizer = new_model("llama(50k)")
    tokenizer.chat_template = request.param or None
    network.save_pretrained(root / "model")
    tokenizer.save_pretrained(root / "model")
    command("run", *RUN, "--no-controls", "--quiet", "--model", str(root / "model"), "--out", str(root / "run"))
    (path,) = (root / "run").glob("cells/*/checkpoints/00000002/state.safetensors")
    state = load_file(path)  # a random model is never right, hence learned nothing: move its weights as if it had
    noise = torch.Generator().manual_seed(0)
    moved = {
        name: tensor + 0.05 * torch.randn(tensor.shape, generator=noise) if name.startswith("policy/") else tensor
        for name, tensor in state.items()
    }
    save_file(moved, path)
    sealed = path.with_name("state.json")
    write_sealed(sealed, read_sealed(sealed))
    return root


def test_texts_and_log_likelihoods_are_those_of_the_policy(trained: Path) -> None:
    checkpoint = find_checkpoints([trained / "run"], "2")[0]
    model = open_checkpoint(checkpoint, str(trained / "model"), "cpu")
    task: Any = open_task(checkpoint.config, trained / "model")
    begun = open_policy(checkpoint.config, task, trained / "model")
    assert not torch.equal(begun.output_head().weight, model.model.get_output_embeddings().weight)
    policy = CausalPolicy(model.model, task.pad)
    items = task.source.items("held_out")[:12]
    prompts = [_as_asked(model, item.prompt) for item in items]
    tokens = task.held_out(12)
    for prompt, row in zip(prompts, tokens, strict=True):
        assert model.tok_encode(prompt) == row[row != task.pad].tolist()
    rollout = policy.sample(Draw(tokens, torch.zeros(12, 12), task.eos, torch.ones(12, dtype=torch.bool)))
    # HFLM leaves out special tokens, of which a random model writes some
    expected = [
        task.tokenizer.decode(response[kept].tolist(), skip_special_tokens=True)
        for response, kept in zip(rollout.responses, rollout.mask, strict=True)
    ]
    greedy = {"until": [], "do_sample": False}
    assert model.generate_until([SimpleNamespace(args=(prompt, greedy)) for prompt in prompts]) == expected
    demonstrations = [task.source.demonstration(item) for item in items]
    found = model.loglikelihood(
        [SimpleNamespace(args=pair) for pair in zip(prompts, demonstrations, strict=True)], disable_tqdm=True
    )
    for row, text, (value, _) in zip(tokens, demonstrations, found, strict=True):
        response = torch.tensor([task.tokenizer(text, add_special_tokens=False)["input_ids"]])
        with torch.no_grad():
            logp = policy.score(Responses(row.unsqueeze(0), response, torch.ones_like(response, dtype=torch.bool))).logp
        assert value == pytest.approx(float(logp.sum()), abs=1e-3)


def _as_asked(model: Any, prompt: str) -> str:
    return model.apply_chat_template([{"role": "user", "content": prompt}]) if model.chat else prompt


def test_the_command_scores_it(trained: Path) -> None:
    printed = command(
        *("lab", "eval", str(trained / "run"), "--checkpoint", "all", "--limit", "8"),
        *("--model", str(trained / "model")),
    )
    assert printed.count("vcpo-arithmetic ") == 2
    scores = pd.concat(map(pd.read_parquet, (trained / "run" / "scores").glob("*.parquet")))
    assert sorted(set(scores["step"])) == [1, 2]
    assert set(scores["task"]) == {"vcpo-arithmetic", "vcpo-arithmetic-sampled"}
    assert (scores["n"] == 8).all()


def test_only_our_tasks_are_read_unless_another_is_named() -> None:
    (spec,), manager = find_tasks(["vcpo-arithmetic"], None, {})
    assert spec["task"] == "vcpo-arithmetic"
    assert not manager.all_tasks
    with pytest.raises(UsageError, match="vcpo-arithmatic: lm-eval has no such task; besides its own there are vcpo-"):
        find_tasks(["vcpo-arithmatic"], None, {})


def test_tasks_of_ones_own_are_scored_and_shown(trained: Path, tmp_path: Path) -> None:
    documents = tmp_path / "sums.jsonl"
    sums = [{"q": f"{a}+{b}=", "a": str(a + b)} for a in range(10) for b in range(10)]
    documents.write_text("\n".join(map(json.dumps, sums)))
    (tmp_path / "sums.yaml").write_text(
        f"task: sums\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: {documents}}}}}\n"
        'test_split: test\noutput_type: loglikelihood\ntarget_delimiter: ""\n'
        'doc_to_text: "{{q}}"\ndoc_to_target: "{{a}}"\n'
        "metric_list:\n  - {metric: acc, aggregation: mean, higher_is_better: true}\n"
        "  - {metric: perplexity, aggregation: perplexity, higher_is_better: false}\nmetadata: {version: 3}\n"
    )
    (cell,) = (trained / "run" / "cells").iterdir()
    command(
        *("lab", "eval", str(cell), "--tasks", "sums", "--tasks-from", str(tmp_path), "--limit", "50"),
        *("--model", str(trained / "model")),
    )
    scores = pd.read_parquet(trained / "run" / "scores" / f"{cell.name}.parquet")
    rows = scores[scores["task"] == "sums"].set_index("metric")
    assert rows["n"].tolist() == [50, 50]
    assert set(zip(rows["task_version"], rows["step"], rows["shots"], strict=True)) == {("3", 2, 0)}
    assert rows.loc["perplexity", "value"] > 1
    assert rows.loc["perplexity", "stderr"] > 0
    assert not rows.loc["perplexity", "higher_is_better"]
    command("report", str(trained / "run"))
    assert "sums" in (trained / "run" / "report.html").read_text()


def test_it_must_be_the_model_that_the_cell_began_with(trained: Path, tmp_path: Path) -> None:
    checkpoint = find_checkpoints([trained / "run"], "last")[0]
    with pytest.raises(UsageError, match="trained the language model model; name its folder with --model"):
        open_checkpoint(checkpoint, "", "cpu")
    network, tokenizer = new_model("llama(50k)", seed=1)
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(UsageError, match="its files differ from those the cell started from"):
        open_checkpoint(checkpoint, str(tmp_path), "cpu")
