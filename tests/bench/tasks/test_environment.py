"""Tasks with an environment: what an episode counts, how it ends, and that rows can be read and replayed."""

from collections.abc import Sequence

import pytest
import torch
from echo_environment import BAD, CALL, END, STOP, Echo

from vcpo_bench.bench.tasks import TASKS, EnvironmentTask, Turn, token_task
from vcpo_bench.bench.tasks.episode import Episode
from vcpo_bench.records.step_facts import EPISODE_FACTS

EVERY = [name for name, kind in TASKS.kinds.items() if issubclass(kind, EnvironmentTask)]


def play(said: Sequence[int], length: int = 20) -> tuple[list[int], Episode]:
    """The response that comes of a policy that says these tokens, and its episode."""
    episode, tokens, left = Episode(Echo(), [], length), [], list(said)
    while not episode.ended and (left or episode.observes):
        if episode.observes:
            tokens.append(episode.observe())
        else:
            tokens.append(left.pop(0))
            episode.say(tokens[-1])
    return tokens, episode


def counted(episode: Episode) -> dict[str, int]:
    return {name: count for name, count in zip(EPISODE_FACTS, episode.facts(), strict=True) if count}


def test_what_is_observed_follows_the_turn_and_the_answer_ends_the_episode() -> None:
    tokens, episode = play([CALL, END, BAD, END, STOP, END, 5, 5])
    assert tokens == [CALL, END, 7, 7, BAD, END, 8, STOP, END]
    assert counted(episode) == {"turns": 3, "calls": 1, "malformed_calls": 1, "observed": 3}


def test_a_void_turn_counts_and_the_episode_goes_on() -> None:
    tokens, episode = play([5, END, STOP, END])
    assert tokens == [5, END, STOP, END]
    assert counted(episode) == {"turns": 2, "void_turns": 1}


def test_an_episode_ends_at_its_limit_of_turns_without_a_last_word() -> None:
    tokens, episode = play([CALL, END] * 5)
    assert tokens == [CALL, END, 7, 7, CALL, END, 7, 7, CALL, END]
    assert counted(episode) == {"turns": 3, "calls": 3, "observed": 4, "turn_limited": 1}


@pytest.mark.parametrize("length", [2, 3, 4])
def test_what_leaves_no_room_for_another_token_is_not_observed(length: int) -> None:
    tokens, episode = play([CALL, END, 5], length)
    assert tokens == [CALL, END]
    assert counted(episode) == {"turns": 1, "calls": 1, "truncated": 1}


def test_a_turn_that_is_not_over_at_the_end_is_truncated() -> None:
    tokens, episode = play([5] * 9, 4)
    assert tokens == [5] * 4
    assert counted(episode) == {"truncated": 1}


@pytest.mark.parametrize("name", EVERY)
def test_the_environment_answers_what_the_script_says_it_does(name: str) -> None:
    task = token_task(name)
    assert isinstance(task, EnvironmentTask)
    prompts, responses, mask = task.demonstrations(0, 0, 20)
    for prompt, response, own in zip(prompts.tolist(), responses.tolist(), mask.tolist(), strict=True):
        episode, tokens = Episode(task, prompt, task.max_response), []
        while not episode.ended:
            if episode.observes:
                tokens.append(episode.observe())
                assert not own[len(tokens) - 1]
            else:
                tokens.append(response[len(tokens)])
                assert own[len(tokens) - 1]
                episode.say(tokens[-1])
        assert tokens == response[: len(tokens)]
        assert not any(own[len(tokens) :])
        assert {"truncated", "turn_limited", "void_turns", "malformed_calls"}.isdisjoint(counted(episode))


@pytest.mark.parametrize("name", EVERY)
def test_turns_are_read_from_tokens_and_mask(name: str) -> None:
    task = token_task(name)
    assert isinstance(task, EnvironmentTask)
    for prompt, response, own in zip(*(part.tolist() for part in task.demonstrations(0, 0, 5)), strict=True):
        turns = task.turns_of(response, own)
        assert task.right(prompt, turns)
        said = [token for turn in turns for token in turn.said]
        assert said == [token for token, mine in zip(response, own, strict=True) if mine]


@pytest.mark.parametrize("name", EVERY)
def test_an_unfinished_last_turn_earns_nothing(name: str) -> None:
    task = token_task(name)
    prompts, responses, mask = task.demonstrations(0, 0, 30)
    last = mask.long() * torch.arange(mask.shape[1])
    shorter = mask.scatter(1, last.argmax(1, keepdim=True), False)
    assert task.reward(prompts, responses, shorter).tolist() == [0.0] * 30


def test_lookup_shows_what_is_observed_in_brackets() -> None:
    task = token_task("lookup(keys=1)")
    prompt = torch.tensor([4, 2, 0, 1, 3, 7, 10, 20])
    digit = task.total(prompt.tolist())  # type: ignore[attr-defined]
    response = torch.tensor([0, 18, 10, 10, digit, digit, 19, *[0] * (task.max_response - 7)])
    mask = torch.tensor([True] * 3 + [False] * 2 + [True] * 2 + [False] * (task.max_response - 7))
    assert task.render(prompt, response, mask) == f"420137a: 0?a[a{digit}]{digit}="
    assert task.reward(prompt[None], response[None], mask[None]).tolist() == [1.0]
    response[5] = (digit + 1) % 10
    assert task.reward(prompt[None], response[None], mask[None]).tolist() == [0.0]


def test_nothing_in_a_prompt_of_lookup_tells_the_answer() -> None:
    """The best constant answer and the best answer per key are right one time in ten."""
    task = token_task("lookup(keys=1)")
    prompts = task.training_prompts(0, 0, 4000)
    answers = torch.tensor([task.total(prompt) for prompt in prompts.tolist()])  # type: ignore[attr-defined]
    for feature in range(prompts.shape[1]):
        values = prompts[:, feature]
        hits = sum(int(answers[values == value].bincount().max()) for value in values.unique())
        assert hits / 4000 < 0.14, feature


@pytest.mark.parametrize(
    ("said", "kind"),
    [([0, 18, 10], "call"), ([18, 17], "call"), ([18, 4], "malformed"), ([0, 1, 2], "void"), ([5, 19], "answer")],
)
def test_turns_of_lookup(said: list[int], kind: str) -> None:
    task = token_task("lookup")
    assert isinstance(task, EnvironmentTask)
    assert all(not task.over(said[:end]) for end in range(1, len(said)))
    assert task.over(said)
    assert task.reply(task.held_out()[0].tolist(), [], said).kind == kind


def test_bisection_always_finds_the_number_of_guess() -> None:
    task = token_task("guess")
    assert isinstance(task, EnvironmentTask)
    seen = set()
    for prompt in task.training_prompts(0, 0, 200).tolist():
        low, high, turns = 0, 15, list[Turn]()
        while not turns or turns[-1].heard:
            said = ((low + high) // 2,)
            turns.append(Turn(said, task.reply(prompt, turns, said).observed))
            low, high = (low, said[0]) if turns[-1].heard == (15,) else (said[0] + 1, high)
        assert len(turns) <= 4
        assert task.right(prompt, turns)
        seen.add(turns[-1].said[0])
    assert seen == set(range(15))
