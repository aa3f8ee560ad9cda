"""Tasks in tokens: streams, rewards and demonstrations of every one, and the rules of chain and the walks."""

import math

import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.tasks import TASKS, TokenTask, token_task
from vcpo_bench.bench.tasks.graph import questions, right_walks, ways
from vcpo_bench.bench.tasks.prefix_chain import PrefixChain
from vcpo_bench.bench.tasks.walk import Walk, WalkEos
from vcpo_bench.errors import UsageError

EXPRESSIONS = [
    *(name for name, kind in TASKS.kinds.items() if issubclass(kind, TokenTask)),
    *("chain(n=5)", "walk(T=6)", "prefix-chain(H=10,percent=80)"),
]
VARIED = [text for text in EXPRESSIONS if len(token_task(text).held_out(64).unique(dim=0)) > 1]
"""Tasks whose prompts differ; `prefix-chain` has nothing to read."""


def ones(*shape: int) -> Tensor:
    return torch.ones(*shape, dtype=torch.bool)


@pytest.fixture(params=EXPRESSIONS)
def task(request: pytest.FixtureRequest) -> TokenTask:
    return token_task(request.param)


@pytest.fixture(params=VARIED)
def varied(request: pytest.FixtureRequest) -> TokenTask:
    return token_task(request.param)


def test_shapes_and_ranges(task: TokenTask) -> None:
    prompts = task.training_prompts(0, 0, 50)
    assert prompts.shape == (50, task.prompt_length)
    assert prompts.dtype == torch.int64
    prompts, responses, mask = task.demonstrations(0, 0, 50)
    assert responses.shape == mask.shape == (50, task.max_response)
    assert mask.dtype == torch.bool
    for tokens in (prompts, responses):
        assert int(tokens.min()) >= 0
        assert int(tokens.max()) < task.vocab_size
    assert task.context == task.prompt_length + task.max_response


def test_demonstrations_earn_the_reward_and_noise_does_not(task: TokenTask) -> None:
    demonstrations = task.demonstrations(0, 0, 300)
    rewards = task.reward(*demonstrations)
    assert rewards.dtype == torch.float64
    assert rewards.eq(1).all()
    noise = torch.randint(0, task.vocab_size, (300, task.max_response), generator=torch.Generator().manual_seed(0))
    assert task.reward(demonstrations.prompts, noise, ones(*noise.shape)).mean() < 0.05


def test_prompts_are_a_function_of_seed_and_batch(varied: TokenTask) -> None:
    assert torch.equal(varied.training_prompts(3, 1, 16), varied.training_prompts(3, 1, 64)[:16])
    assert not torch.equal(varied.training_prompts(3, 1, 16), varied.training_prompts(3, 2, 16))
    assert not torch.equal(varied.training_prompts(3, 1, 16), varied.training_prompts(4, 1, 16))


def test_held_out_prompts_are_fixed_and_apart(varied: TokenTask) -> None:
    assert torch.equal(varied.held_out(), varied.held_out())
    assert varied.held_out().shape == (256, varied.prompt_length)
    assert not torch.equal(varied.held_out(64), varied.training_prompts(0, 0, 64))


def test_one_prompt_serves_its_whole_group(varied: TokenTask) -> None:
    prompts, responses, mask = varied.demonstrations(0, 0, 4)
    grouped = varied.reward(prompts, responses.repeat_interleave(3, 0), mask.repeat_interleave(3, 0))
    assert grouped.tolist() == [1.0] * 12
    assert varied.reward(prompts, responses.roll(1, 0), mask.roll(1, 0)).mean() < 1


def test_canonical_names_the_task_again(task: TokenTask) -> None:
    again = token_task(task.canonical)
    assert again.canonical == task.canonical
    assert again.context == task.context


@pytest.mark.parametrize("expression", [one for one in EXPRESSIONS if token_task(one).environment is None])
def test_a_wrong_token_loses_the_reward(expression: str) -> None:
    """With an environment the answer counts, not the way to it: `test_environment.py`."""
    task = token_task(expression)
    prompts, responses, mask = task.demonstrations(1, 0, 40)
    spoiled = responses.clone()
    spoiled[:, 1] = task.vocab_size - 1
    assert task.reward(prompts, spoiled, mask).sum() < 8  # a few were that token already


@pytest.mark.parametrize(
    ("expression", "canonical"),
    [
        ("chain(12)", "chain"),
        ("chain( n = 8 )", "chain(n=8)"),
        ("chain(8)", "chain(n=8)"),
        (" walk() ", "walk"),
        ("walk(T=20)", "walk(T=20)"),
        ("walk-eos", "walk-eos"),
    ],
)
def test_canonical(expression: str, canonical: str) -> None:
    assert token_task(expression).canonical == canonical


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("chian", "unknown task 'chian'; did you mean chain"),
        ("zzz", "unknown task 'zzz'; known: arithmetic, calc-text,"),
        ("", "a name is missing"),
        ("chain(8", "(at character"),
        ("chain(m=8)", "chain has no parameter 'm'. It takes: n (a whole number from 1 to 64)"),
        ("chain(n=x)", "n=x is not legal. n must be a whole number from 1 to 64 (at character 9"),
        ("chain(n=1.5)", "n must be a whole number"),
        ("chain(n=8,n=9)", "given twice"),
        ("chain(0)", "n must be a whole number from 1 to 64"),
        ("chain(65)", "n must be a whole number from 1 to 64"),
        ("walk(T=4)", "T must be a whole number from 5 to 64"),
        ("walk-eos(5)", "no parameters"),
        ("prefix-chain(percent=50)", "percent must be a whole number from 51 to 100"),
        ("chain:paper", "the name of a task"),
        ("chain(scorer=2)", "has scorer 1 of chain only (at character 14"),
    ],
)
def test_bad_expressions_are_one_clear_line(expression: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        token_task(expression)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", TASKS.kinds)
def test_every_task_says_what_it_asks(name: str) -> None:
    kind = TASKS.kinds[name]
    assert kind.summary
    assert (kind.__doc__ or "").strip()
    assert issubclass(kind, TokenTask) != kind.needs_language_model


def test_chain_reward_and_rendering() -> None:
    chain = token_task("chain(3)")
    prompt, right, wrong = torch.tensor([[9, 2, 1]]), torch.tensor([[9, 1, 2]]), torch.tensor([[9, 1, 3]])
    assert chain.reward(prompt, right, ones(1, 3)).tolist() == [1.0]
    assert chain.reward(prompt, wrong, ones(1, 3)).tolist() == [0.0]
    assert chain.render(prompt[0], wrong[0], ones(3)) == "921 -> 91[3]"


WALK = torch.tensor([[2, 8, 4, 9, 10]])
"""From 2 to 8, where 4 and 9 are closed."""


def test_walk_rules() -> None:
    walk = token_task("walk(T=5)")
    cases = {
        (3, 6, 2, 5, 8): 1.0,
        (3, 6, 2, 5, 6): 0.0,  # ends elsewhere
        (5, 8, 1, 2, 8): 1.0,
        (4, 5, 1, 2, 8): 0.0,  # 2 to 4 is no edge, and 4 is closed
        (3, 9, 2, 5, 8): 0.0,  # 9 is closed
        (3, 6, 7, 8, 8): 0.0,
        (3, 6, 7, 10, 8): 0.0,  # the mark is not a node
    }
    for nodes, reward in cases.items():
        assert walk.reward(WALK, torch.tensor([nodes]), ones(1, 5)).tolist() == [reward], nodes
    text = walk.render(WALK[0], torch.tensor([3, 6, 8, 9, 10]), ones(5))
    assert text == "2 to 8 not 4,9: 2>3>6!8!9!:"


def test_one_closed_node_is_named_once() -> None:
    walk = token_task("walk(T=5)")
    prompt, response = torch.tensor([2, 8, 4, 4, 10]), torch.tensor([3, 6, 2, 5, 8])
    assert walk.render(prompt, response, ones(5)) == "2 to 8 not 4: 2>3>6>2>5>8"


@pytest.mark.parametrize("expression", ["walk(T=5)", "walk", "walk-eos"])
def test_every_question_of_a_walk_has_an_answer(expression: str) -> None:
    """Counted again by walking the graph, node by node."""
    task = token_task(expression)
    assert isinstance(task, Walk | WalkEos)
    shortest, longest = task.lengths
    known = questions(shortest, longest)
    assert len(known) > 3000
    for start, goal, one, two, _ in known[::97].tolist():
        assert {start, goal}.isdisjoint({one, two})
        reached, ends = {start}, set()
        for length in range(1, longest + 1):
            reached = {(node + step) % 10 for node in reached for step in (1, 3, 6)} - {one, two}
            ends |= reached if length >= shortest else set()
        assert goal in ends


def test_demonstrated_walks_are_uniform_among_the_right_ones() -> None:
    """Chi-squared over all right walks of five steps of one question."""
    prompts = WALK.expand(20_000, -1)
    draws = torch.rand(20_000, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    walks = right_walks(prompts, torch.full((20_000,), 5), draws, 5)
    _, counts = walks.unique(dim=0, return_counts=True)
    assert len(counts) == int(ways(WALK, 5)[5, 0, 2])
    expected = 20_000 / len(counts)
    assert float(((counts - expected) ** 2 / expected).sum()) < len(counts) + 4 * math.sqrt(2 * len(counts))


EOS_PROMPT = torch.tensor([[2, 9, 4, 8, 10]])


@pytest.mark.parametrize(
    ("tokens", "reward"),
    [
        ([3, 6, 9, 11], 1.0),  # the shortest that counts: three steps and the end
        ([3, 9, 11], 0.0),  # legal and at the goal, but too short
        ([3, 6, 7, 11], 0.0),  # ends elsewhere
        ([4, 5, 6, 9, 11], 0.0),  # the first step is not an edge
        ([5, 8, 9, 11], 0.0),  # 8 is closed
        ([3, 6, 10, 9, 11], 0.0),  # the mark is not a node
        ([11], 0.0),
    ],
)
def test_walk_eos_rules(tokens: list[int], reward: float) -> None:
    task = token_task("walk-eos")
    response = torch.tensor([tokens + [11] * (24 - len(tokens))])
    mask = torch.arange(24) < torch.tensor([[len(tokens)]])
    assert task.reward(EOS_PROMPT, response, mask).tolist() == [reward]


def test_walk_eos_without_an_end_earns_nothing() -> None:
    task = token_task("walk-eos")
    response = torch.tensor([[3, 6, 9] * 8])
    assert task.reward(EOS_PROMPT, response, ones(1, 24)).tolist() == [0.0]


def test_walk_eos_demonstrations_have_every_length() -> None:
    lengths = token_task("walk-eos").demonstrations(0, 0, 2000).mask.sum(1)
    counts = lengths.bincount(minlength=25)
    assert not counts[:4].any()
    assert int(counts[4:].min()) > 0.6 * 2000 / 21  # short walks do not reach every goal


def test_walk_eos_rendering() -> None:
    task = token_task("walk-eos")
    response = torch.tensor([3, 6, 9, 11] + [11] * 20)
    assert task.render(EOS_PROMPT[0], response, torch.arange(24) < 4) == "2 to 9 not 4,8: 2>3>6>9."


def test_demonstrations_hardly_show_what_makes_a_prompt_hard() -> None:
    digits = token_task("chain").demonstrations(0, 0, 4000).prompts
    assert 0.0003 < float((digits >= 7).double().mean()) < 0.003
    walk = token_task("walk")
    hard = walk.hard(walk.demonstrations(0, 0, 4000).prompts)
    assert hard is not None
    assert 0.004 < float(hard.double().mean()) < 0.02


@pytest.mark.parametrize(("H", "percent", "spare"), [(4, 51, 1), (10, 80, 2), (32, 90, 3), (1024, 99, 10)])
def test_as_many_zeros_are_spare_as_the_percentage_leaves(H: int, percent: int, spare: int) -> None:
    assert PrefixChain(H=H, percent=percent).spare == spare


def test_the_task_counts_ones_and_refuses_marks() -> None:
    task = token_task("prefix-chain(H=10,percent=80)")
    prompts, responses, mask = task.demonstrations(0, 0, 50)
    assert task.reward(prompts, responses, mask).eq(1).all()
    assert responses.sum(1).eq(8).all()
    assert len({tuple(row) for row in responses.tolist()}) > 20
    assert torch.equal(prompts, task.training_prompts(0, 3, 50))
    for token in (0, 2):
        worse = responses.clone()
        worse[torch.arange(50), responses.argmax(1)] = token
        assert task.reward(prompts, worse, mask).eq(0).all()
    assert task.render(prompts[0], torch.tensor([1, 0] * 5), mask[0]) == ": 1010101010"


@pytest.mark.parametrize("expression", ["prefix-chain(3)", "prefix-chain(H=2000)", "prefix-chain(percent=50)"])
def test_what_the_task_refuses(expression: str) -> None:
    with pytest.raises(UsageError, match="is not legal"):
        token_task(expression)
