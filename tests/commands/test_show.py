"""`vcpo-bench show`: results folders, and every entry of every kind."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import call, refused

from vcpo_bench.commands.support.kinds.find import kinds

PAGES = [(kind.singular, row[0]) for kind in kinds() for row in kind.listing().rows]


def test_show_and_json(finished: Path) -> None:
    shown = call("show", str(finished), "--json")
    assert shown.exit_code == 0
    board = json.loads(shown.stdout)
    assert {row["method"] for row in board} == {"clip", "reinforce"}


def test_several_folders_are_pooled_not_dropped(
    finished: Path, tmp_path: Path, make_results: Callable[..., Path]
) -> None:
    other = make_results(tmp_path / "other", methods=("vcpo",), lags=(1,), seeds=(0,), steps=20)
    shown = call("show", str(finished), str(other), "--json")
    assert shown.exit_code == 0
    board = json.loads(shown.stdout)
    assert {row["method"] for row in board} == {"clip", "reinforce", "vcpo"}
    assert sum(row["total"] for row in board) == sum(len(list((one / "cells").iterdir())) for one in (finished, other))
    assert not (other / "scoreboard.csv").exists()
    assert "absent" in refused("show", str(finished), str(tmp_path / "absent"))


def test_show_of_nothing_is_a_clear_error(tmp_path: Path) -> None:
    refused("show", str(tmp_path))


@pytest.mark.parametrize(("kind", "name"), PAGES)
def test_whatever_is_listed_can_be_shown(kind: str, name: str) -> None:
    shown = call("show", kind, name)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.strip()
    if kind != "preset":  # a preset is shown as the file it is
        assert max(map(len, shown.stdout.splitlines())) <= 80


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in PAGES}))
def test_unknown_names_are_one_line_of_one_form_with_the_closest(kind: str) -> None:
    known = [name for word, name in PAGES if word == kind]
    misspelled = f"{max(known, key=len)}x"
    result = call("show", kind, misspelled)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: unknown {kind} {misspelled!r}; did you mean ")
    assert result.stderr.count("\n") == 1
    assert max(known, key=len) in result.stderr.partition("did you mean ")[2].partition("?")[0]
    far = call("show", kind, "@@@@").stderr
    assert far.startswith(f"error: unknown {kind} '@@@@'; known: "), far


def test_an_unknown_kind_is_one_line_with_the_closest() -> None:
    result = call("show", "mehtod", "clip")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: unknown kind 'mehtod'; did you mean method? Known: analysis, component, ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("kind", "expression", "said"),
    [
        ("task", "chain(n=8)", ["chain(n=8): ", "n=8  (default 12; a whole number from 1 to 64)"]),
        ("task", "chain(8)", ["chain(n=8): "]),
        ("method", "clip(high=0.3)+ess", ["clip(high=0.3)+ess: ", "high=0.3  (default 0.2; ", "|"]),
        ("part", "kl(beta=0.5)", ["kl(beta=0.5): ", "beta=0.5  (default "]),
        ("regime", "fifo(publish_every=2)", ["fifo(publish_every=2): ", "publish_every=2  (default 1; "]),
        ("sampler", "torch(slots=4)", ["torch(slots=4): "]),
        ("analysis", "compare(replications=500)", ["compare(replications=500): "]),
    ],
)
def test_an_expression_is_explained_with_its_values(kind: str, expression: str, said: list[str]) -> None:
    shown = call("show", kind, expression)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith(said[0])
    assert all(part in shown.stdout for part in said)


@pytest.mark.parametrize(("kind", "wrong"), [("task", "chain(m=8)"), ("method", "clip(hig=1)"), ("part", "kl(bta=1)")])
def test_an_illegal_expression_points_at_the_character(kind: str, wrong: str) -> None:
    result = call("show", kind, wrong)
    assert result.exit_code == 2
    assert "has no parameter" in result.stderr
    assert ">>>" in result.stderr


@pytest.mark.parametrize("word", ["method", "methods", "task", "detector"])
def test_a_kind_without_a_name_asks_for_one(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plural = word if word.endswith("s") else f"{word}s"
    assert refused("show", word) == f"error: show {word}: give a name; vcpo-bench ls {plural} lists them\n"


def test_a_page_has_no_json() -> None:
    assert "only a scoreboard" in refused("show", "task", "chain", "--json")


def test_a_method_is_described_with_its_curve() -> None:
    shown = call("show", "method", "vespo").output
    assert "k_pos=2" in shown
    assert "2602.10693" in shown
    assert shown.count("|") > 10


def test_a_task_is_described_with_legal_values() -> None:
    shown = call("show", "task", "chain").output
    assert "n=12  (a whole number from 1 to 64)" in shown
    assert "defined in vcpo_bench.bench.tasks.chain\n" in shown
    assert "a language model: --model" in call("show", "task", "gsm8k").output


def test_conditions_for_continuous_integration(finished: Path) -> None:
    passed = call("show", str(finished), "--fail-if", "final_reward < 0", "--json")
    assert passed.exit_code == 0
    assert json.loads(passed.stdout)
    failed = call("show", str(finished), "--fail-if", "method=clip: final_reward >= 0", "--fail-if", "total > 0")
    assert failed.exit_code == 1
    assert failed.stderr.count("failed: ") == 2
    assert call("show", str(finished), "--fail-if", "rewards < 0").exit_code == 2
    assert call("show", "method", "vcpo", "--fail-if", "total > 0").exit_code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cispo", "trl"), "GRPOConfig(loss_type='cispo', epsilon_high=5.0"),
        (("cispo", "trl"), "with one update per batch it is 1"),
        (("vespo", "prime-rl"), 'method = "vespo+token-mean"'),
        (("gac", "verl"), "gac in verl: not possible, because it compares whole gradients"),
    ],
)
def test_a_method_in_a_trainer(words: tuple[str, str], said: str) -> None:
    name, trainer = words
    result = call("show", "method", name, "--in", trainer)
    assert result.exit_code == 0
    assert said in result.output
    assert json.loads(call("show", "method", name, "--in", trainer, "--json").output)["lines"]


def test_a_trainer_is_asked_about_methods_only() -> None:
    assert "is asked of a method" in refused("show", "task", "walk", "--in", "trl")
