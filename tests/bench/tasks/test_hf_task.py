"""Text tasks bound to a tokenizer, and models from scratch with a supervised start."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hf_models
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.policies.hf.create import CHARACTERS, character_tokenizer, new_model, shape_for
from vcpo_bench.bench.policies.hf.new_model_spec import Llama, read_new_model
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.bench.training import imitation_hf as warm
from vcpo_bench.bench.trajectories import Responses
from vcpo_bench.errors import UsageError
from vcpo_bench.records.settings import read_settings

ARITHMETIC = text_task("arithmetic(terms=3,largest=99)")
TEMPLATE = "{% for m in messages %}Q{{ m.content }}{% endfor %}{% if add_generation_prompt %}A{% endif %}"


def bound(**settings: Any) -> BoundTask:
    return BoundTask(ARITHMETIC, character_tokenizer(), **settings)


def test_the_tokenizer_gives_back_every_character() -> None:
    tokenizer, text = character_tokenizer(), "".join(CHARACTERS) + " a  b\n(1+2)*3 , . ' n't"
    ids = tokenizer(text)["input_ids"]
    assert len(ids) == len(text)
    assert tokenizer.decode(ids) == text


def test_prompts_are_padded_on_the_left_and_pure_functions_of_their_place() -> None:
    task = bound()
    prompts = task.training_prompts(0, 3, 20)
    assert torch.equal(prompts, bound().training_prompts(0, 3, 20))
    assert torch.equal(prompts[:5], task.training_prompts(0, 3, 5))
    assert not torch.equal(prompts, task.training_prompts(1, 3, 20))
    lengths = (prompts != task.pad).sum(1)
    assert lengths.min() < lengths.max() <= task.prompt_length
    for prompt, length in zip(prompts, lengths, strict=True):
        assert (prompt[: task.prompt_length - length] == task.pad).all()
        assert task.tokenizer.decode(prompt[task.prompt_length - length :].tolist()).endswith("=")


def test_demonstrations_earn_the_reward_and_other_responses_do_not() -> None:
    task = bound()
    prompts, responses, mask = task.demonstrations(0, 0, 30)
    assert (task.reward(prompts, responses, mask) == 1).all()
    assert (responses.gather(1, mask.sum(1, keepdim=True) - 1) == task.eos).all()
    assert task.reward(prompts, responses.flip(0), mask.flip(0)).mean() < 0.3
    twice = torch.stack([responses[:2], responses[1:3]], 1).flatten(0, 1)  # two responses per prompt
    both = task.reward(prompts[:2], twice, torch.stack([mask[:2], mask[1:3]], 1).flatten(0, 1))
    assert both[0] == both[2] == 1
    assert not set(map(tuple, prompts.tolist())) & set(map(tuple, task.training_prompts(0, 0, 30).tolist()))


def test_an_episode_reads_as_text() -> None:
    task = bound()
    prompts, responses, mask = task.demonstrations(0, 0, 1)
    text = task.render(prompts[0], responses[0], mask[0])
    assert "<" not in text
    assert text.startswith(task._items[prompts[0].numpy().tobytes()].prompt)


def test_the_chat_template_is_put_around_prompts_unless_turned_off() -> None:
    tokenizer = character_tokenizer()
    tokenizer.chat_template = TEMPLATE
    chat, plain = (BoundTask(ARITHMETIC, tokenizer, chat=chat) for chat in (True, False))
    nothing = (torch.zeros(0), torch.zeros(0, dtype=torch.bool))
    shown = [task.render(task.held_out(1)[0], *nothing) for task in (chat, plain)]
    assert shown[0].strip() == f"Q{shown[1].strip()}A"


def test_a_response_that_cannot_hold_the_answer_is_refused() -> None:
    with pytest.raises(UsageError, match="max-response 3"):
        bound(max_response=3).demonstrations(0, 0, 30)


def test_a_prompt_may_not_begin_with_the_padding() -> None:
    tokenizer = character_tokenizer()
    tokenizer.pad_token = "1"
    with pytest.raises(UsageError, match="padding token"):
        BoundTask(ARITHMETIC, tokenizer)


@pytest.mark.parametrize(("size", "parameters"), [("50k", 5e4), ("1M", 1e6), ("3.5M", 3.5e6)])
def test_a_new_model_has_about_the_size_asked_for(size: str, parameters: float) -> None:
    network, tokenizer = new_model(f"llama({size})")
    assert 0.6 < sum(p.numel() for p in network.parameters()) / parameters < 1.6
    assert len(tokenizer) == network.config.vocab_size


def test_a_new_model_is_read_by_the_one_grammar() -> None:
    assert read_new_model(" llama( size=1.5M , head=32 ) ") == Llama(size=1.5e6, head=32)
    assert read_new_model("llama(50k)").text() == "llama(size=50k)"
    with pytest.raises(UsageError, match=r"no parameter 'hed'; did you mean head\?.*llama\(1M,>>>hed=8\)"):
        read_new_model("llama(1M,hed=8)")


def test_new_weights_depend_on_the_seed_only() -> None:
    first, second, other = (new_model("llama(50k)", seed)[0].lm_head.weight for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    "expression",
    ["llama", "llama(1)", "llama(5k)", "gpt5(1M)", "llama(1M", "llama(head=8)", "llama(1M)+x", "llama()", "llama(iM)"],
)
def test_what_cannot_be_created_is_said(expression: str) -> None:
    with pytest.raises(UsageError, match=r"llama\(1M\)"):
        new_model(expression)


def test_a_warmed_model_is_an_ordinary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "CHECK_EVERY", 2)
    out = tmp_path / "model"
    made = warm.warm_up_model(hf_models.TASK, out, new="llama(50k)", target=0.0)
    assert made.steps == 1
    network, tokenizer = AutoModelForCausalLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    assert sum(p.numel() for p in network.parameters()) == made.parameters
    assert tokenizer.decode(tokenizer("3*4=")["input_ids"]) == "3*4="
    origin: Mapping[str, Any] = json.loads((out / warm.ORIGIN_FILE).read_text())
    assert origin["task"] == hf_models.TASK.replace("terms=2,largest=9", "largest=9,terms=2")
    with pytest.raises(UsageError, match="holds a model already"):
        warm.warm_up_model(hf_models.TASK, out, new="llama(50k)")
    again = warm.warm_up_model(hf_models.TASK, tmp_path / "next", model=str(out), target=0.0)
    assert again.parameters == made.parameters


def test_warm_up_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "LIMIT", 30)
    seen: list[float] = []
    imitate = warm.imitate

    def watched(policy: Any, task: Any, *rest: Any) -> tuple[int, float]:
        before = policy.score(Responses(*task.demonstrations(7, 0, 32))).logp.sum().item()
        try:
            return imitate(policy, task, *rest)
        finally:
            seen.append(policy.score(Responses(*task.demonstrations(7, 0, 32))).logp.sum().item() - before)

    monkeypatch.setattr(warm, "imitate", watched)
    with pytest.raises(UsageError, match="after 30 warm-up updates"):
        warm.warm_up_model(hf_models.TASK, tmp_path / "m", new="llama(50k)", target=0.9)
    assert seen[0] > 100
    assert not (tmp_path / "m").exists()


def shared(flags: dict[str, Any]) -> dict[str, Any]:
    """What the flags of a grid say about all its cells."""
    return GridSpec(("clip",), (0,), (0,), model=flags["model"], settings=read_settings(flags)).shared()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"model": "no/such/folder/at/all"}, "no such folder"),
        ({"dtype": "float16"}, "--dtype float16: must be 'float32' or 'bfloat16'"),
        ({"lora": -1}, "--lora -1"),
        ({"sampler": "torch(top_p=0.9)"}, "truncate=allow"),
    ],
)
def test_settings_that_cannot_be_used_are_named(tmp_path: Path, settings: dict[str, Any], named: str) -> None:
    folder = hf_models.save(tmp_path)
    with pytest.raises(UsageError, match=named):
        shared({"model": str(folder)} | settings)


def test_a_folder_that_holds_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"config\.json"):
        shared({"model": str(tmp_path)})


def test_the_sizes_that_the_pages_of_the_studies_name() -> None:
    assert shape_for(1e6) == (4, 144, 16)
    assert shape_for(3e5, 32) == (2, 96, 32)
    assert shape_for(1e5)[:2] == (2, 64)
