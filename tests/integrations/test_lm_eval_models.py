"""The real lm-eval on a language model that a cell trained: the texts and numbers are those of the policy itself.

Runs in the environment that `.ci/integrations.d/evals.sh` builds; skipped where lm-eval or transformers is absent.
"""

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
from vcpo_bench.bench.outside.lm_eval.evaluate import Scoring, language_model
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
    model = language_model(checkpoint, Scoring(model=str(trained / "model")))
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


def test_it_must_be_the_model_that_the_cell_began_with(trained: Path, tmp_path: Path) -> None:
    checkpoint = find_checkpoints([trained / "run"], "last")[0]
    with pytest.raises(UsageError, match="trained the language model model; name its folder with --model"):
        language_model(checkpoint, Scoring())
    network, tokenizer = new_model("llama(50k)", seed=1)
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(UsageError, match="its files differ from those the cell started from"):
        language_model(checkpoint, Scoring(model=str(tmp_path)))
