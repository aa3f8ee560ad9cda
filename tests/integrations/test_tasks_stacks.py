"""Text tasks beside third-party packages: reasoning-gym's data, math-verify's verdicts, transformers' sizes."""

import contextlib
import multiprocessing
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))
from math_pairs import DIFFERENT, SAME, pairs

from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.tasks.text.base import Item
from vcpo_bench.bench.tasks.text.items.item_stream import ItemStream
from vcpo_bench.bench.tasks.text.reasoning_gym import ReasoningGym
from vcpo_bench.bench.tasks.text.scoring import confined_program as program
from vcpo_bench.bench.tasks.text.scoring.confined import confined_judge
from vcpo_bench.bench.tasks.text.scoring.math_answers import same_answer
from vcpo_bench.errors import UsageError

RESTATED = {
    *((r"2^{10}", "1024"), (r"\sqrt{4}", "2"), ("2*3", "6"), ("3+4", "7"), ("4!", "24"), (r"\binom52", "10")),
    *((r"(x+1)^2", "x^2+2x+1"), (r"\frac{1}{2}^2", r"\frac{1}{4}"), ("x2", "2x"), ("50\\%", "0.5")),
}
"""Right by value, which this project calls wrong on purpose: a response must not earn a reward by restating."""
LAX = {
    *(("1011_2", "1011"), ("1011_2", "1011_3"), ("0.333333333", r"\frac13"), ("(1,2)", "1,2"), ("1,1", "1")),
    *(("x", "X"), ("2^10", "2^{10}"), ("5", r"5\text{ or 6}")),
}
"""math-verify drops bases, case and words, rounds, reads a point as a list, and `2^10` as no TeX does."""


@pytest.mark.parametrize("dataset", ["leg_counting", "chain_sum", "countdown", "word_ladder"])
def test_reasoning_gym_items_are_pure_and_their_answers_right(dataset: str) -> None:
    pytest.importorskip("reasoning_gym", reason="runs in .ci/integrations tasks")
    task = text_task(f"reasoning-gym(dataset={dataset})")
    items = [task.item(0, 1, index) for index in range(3)]
    assert items == [text_task(task.canonical).item(0, 1, index) for index in range(3)]
    assert len({item.prompt for item in items}) == 3
    for item in items:
        assert task.score(item, task.demonstration(item)) == 1
        assert task.score(item, "<answer>not this</answer>") == 0  # the package gives 0.01
        assert task.score(item, item.answer) == 0  # without tags


def test_reasoning_gym_items_are_the_same_in_another_process() -> None:
    pytest.importorskip("reasoning_gym", reason="runs in .ci/integrations tasks")
    code = (
        "from vcpo_bench.bench.tasks.text import text_task\n"
        "print(text_task('reasoning-gym(chain_sum)').item(5, 1, 2).prompt)"
    )
    again = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert again.strip() == text_task("reasoning-gym(chain_sum)").item(5, 1, 2).prompt.strip()


def test_a_level_of_reasoning_gym_decides_the_questions() -> None:
    pytest.importorskip("reasoning_gym", reason="runs in .ci/integrations tasks")
    easy, usual = (text_task(f"reasoning-gym(dataset=chain_sum,level={level})") for level in (1, 0))
    assert max(len(item.prompt) for item in easy.items("train")) < max(len(i.prompt) for i in usual.items("train"))
    with pytest.raises(UsageError, match="composite has no levels"):
        text_task("reasoning-gym(dataset=composite,level=1)").item(0, 0, 0)


def test_reasoning_gym_refuses_unknown_data_sets() -> None:
    pytest.importorskip("reasoning_gym", reason="runs in .ci/integrations tasks")
    with pytest.raises(UsageError, match="no data set 'nope'"):
        text_task("reasoning-gym(dataset=nope)")


EVALUATED = (
    *("binary_matrix", "countdown", "intermediate_integration", "n_queens", "polynomial_multiplication"),
    *("puzzle24", "simple_integration", "spiral_matrix", "string_insertion"),
)
"""Data sets of reasoning-gym whose scorers hand the answer to `eval` or to sympy, which evaluates it."""

UNANSWERED = {"boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"}
"""Data sets whose own answers are no full score, judged in this process or in another: puzzles with many solutions."""

LENIENT = {"game_of_life_halting"}
"""Data sets whose scorers take any text for a yes, which is right in half of the puzzles."""

PAYLOADS = (
    "[open({file!r}, 'w').write('x')]",
    "__import__('os').system('touch ' + {file!r})",
    "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'Popen'][0](['touch', {file!r}])",
    "sin('__import__(\"pathlib\").Path(' + repr({file!r}) + ').touch()')",
    "(lambda: open({file!r}, 'w'))()",
)


def attack(dataset: str, file: str, says: Any) -> None:
    """Body of a forked process: judge a right answer and every payload, under the limits."""
    judge = program._JUDGES["reasoning-gym"](dataset)
    item = ReasoningGym(dataset=dataset).draw(ItemStream(0, "attack", 1, 0))  # `item` would draw 256 held-out ones
    program._confine()
    answers = [item.answer.strip(), *(payload.format(file=file) for payload in PAYLOADS)]
    says.send([program._judged(judge, (answer, item.meta["entry"])) for answer in answers])


def test_no_scorer_of_reasoning_gym_runs_the_text_of_a_model(tmp_path: Path) -> None:
    package = pytest.importorskip("reasoning_gym", reason="runs in .ci/integrations tasks")
    context = multiprocessing.get_context("fork")
    wrong, unsolved = [], []
    names = sorted(set(package.factory.DATASETS) - {"composite"})  # which has no default configuration
    for name in names:
        hears, says = context.Pipe(duplex=False)
        process = context.Process(target=attack, args=(name, str(tmp_path / name), says))
        process.start()
        says.close()
        solved, *verdicts = hears.recv()
        process.join()
        if not solved:
            unsolved.append(name)
        if (any(verdicts) and name not in LENIENT) or (tmp_path / name).exists():
            wrong.append(name)
    print(len(names), "data sets; their own answer is not a full score:", unsolved)
    assert not wrong
    assert not set(unsolved) & set(EVALUATED)
    assert len(names) >= 100
    assert set(unsolved) <= UNANSWERED


@pytest.mark.parametrize("dataset", EVALUATED)
def test_a_payload_does_nothing_and_the_right_answer_counts(tmp_path: Path, dataset: str) -> None:
    package = pytest.importorskip("reasoning_gym", reason="runs in .ci/integrations tasks")
    task = text_task(f"reasoning-gym({dataset})")
    item = task.item(0, 1, 0)
    harmful = PAYLOADS[1].format(file=str(tmp_path / "unconfined"))
    with contextlib.suppress(Exception):
        package.create_dataset(dataset, size=1, seed=0).score_answer(harmful, item.meta["entry"])
    assert (tmp_path / "unconfined").exists()  # the package does run it
    for payload in PAYLOADS:
        assert task.score(item, f"<answer>{payload.format(file=str(tmp_path / 'pwned'))}</answer>") == 0
    assert not (tmp_path / "pwned").exists()
    assert task.score(item, task.demonstration(item)) == 1


@pytest.fixture(scope="module")
def verdict() -> Any:
    """math-verify's opinion of two boxed answers."""
    package = pytest.importorskip("math_verify", reason="runs in .ci/integrations tasks")

    def read(answer: str) -> Any:
        return package.parse(f"$\\boxed{{{answer}}}$", parsing_timeout=None)

    return lambda one, other: package.verify(read(one), read(other), timeout_seconds=None)


def test_math_verify_agrees_but_for_what_is_right_by_value_only(verdict: Any) -> None:
    checked = [(one, other, verdict(one, other)) for one, other in pairs(SAME) + pairs(DIFFERENT)]
    stricter = {(one, other) for one, other, right in checked if right and not same_answer(one, other)}
    laxer = [(one, other) for one, other, right in checked if not right and same_answer(one, other)]
    print("only math-verify calls right:", sorted(stricter), "\nonly same_answer calls right:", sorted(laxer))
    assert stricter <= RESTATED | LAX
    assert len(laxer) <= 0.25 * len(checked)  # words, units and spellings that math-verify does not read


def test_math_verify_judges_the_same_where_it_can_only_compute(verdict: Any) -> None:
    judge = confined_judge("math-verify")
    differing = [pair for pair in pairs(SAME) + pairs(DIFFERENT) if judge.right(*pair) != verdict(*pair)]
    assert not differing


def test_math_verify_can_be_the_judge() -> None:
    pytest.importorskip("math_verify", reason="runs in .ci/integrations tasks")
    strict, lenient = text_task("math(data=sample)"), text_task("math(data=sample,judge=math-verify)")
    assert re.fullmatch(r"math\(data=sample,judge=math-verify/[\d.]+\)", lenient.canonical)
    assert text_task(lenient.canonical).canonical == lenient.canonical
    item = Item("How many?", "1024", {})
    for text, by_own, by_package in ((r"\boxed{1024}", 1, 1), (r"\boxed{2^{10}}", 0, 1), (r"\boxed{1023}", 0, 0)):
        assert (strict.score(item, text), lenient.score(item, text)) == (by_own, by_package)
    began = time.perf_counter()
    assert lenient.score(item, r"\boxed{9^{9^{9^{9}}}}") == 0
    assert time.perf_counter() - began < 15
    assert all(lenient.score(one, lenient.demonstration(one)) == 1 for one in lenient.items("held_out"))
    with pytest.raises(UsageError, match=r"math-verify==0\.0\.1"):
        text_task("math(data=sample,judge=math-verify/0.0.1)")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["Llama", "Qwen2", "Qwen3"])
def test_sizes_and_saved_activations_match_transformers(kind: str, dtype: str) -> None:
    transformers = pytest.importorskip("transformers", reason="runs in .ci/integrations tasks")
    import torch

    from vcpo_bench.bench.machine.gpu_estimate import Workload, memory
    from vcpo_bench.bench.machine.model_shapes import read_shape

    config = getattr(transformers, f"{kind}Config")(
        vocab_size=128,
        hidden_size=256,
        intermediate_size=640,
        num_hidden_layers=3,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=32,
        attn_implementation="sdpa",
    )
    model = getattr(transformers, f"{kind}ForCausalLM")(config)
    shape = read_shape(config.to_dict(), kind)
    assert shape.parameters == sum(parameter.numel() for parameter in model.parameters())
    saved: dict[int, Any] = {}

    def keep(tensor: Any) -> Any:
        saved[tensor.untyped_storage().data_ptr()] = tensor  # held, so that no place is used twice
        return tensor

    with (
        torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16", cache_enabled=False),
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
    ):
        real = (torch.arange(60) >= torch.tensor([[3], [0], [2], [0]])).long()  # padded on the left, as batches are
        tokens = torch.randint(0, 128, (4, 60))
        hidden = model.model(tokens, attention_mask=real, use_cache=False).last_hidden_state
    assert hidden.requires_grad
    weights = {tuple(parameter.shape) for parameter in model.parameters()}  # also their casts
    places = {
        place: tensor
        for place, tensor in saved.items()
        if not {tuple(tensor.shape), tuple(tensor.shape[::-1])} & weights
    }
    measured = sum(tensor.untyped_storage().nbytes() for tensor in places.values())
    estimated = memory(shape, Workload(4, 1, 56, prompt_tokens=4, dtype=dtype)).activations
    print(f"{kind} {dtype}: autograd saves {measured}, estimated {estimated:.0f}, ratio {measured / estimated:.2f}")
    assert 0.85 < measured / estimated < 1.15
