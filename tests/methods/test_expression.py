"""The grammar: what it accepts, its one canonical spelling, and errors that point."""

import pytest

from vcpo_bench.methods import ExpressionError, parse_method, parse_methods, split_expressions


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("clip", "clip"),
        ("clip()", "clip"),
        ("clip( high = 0.20 , low=2e-1 )", "clip"),
        ("clip(low=0.1,high=0.28)", "clip(high=0.28,low=0.1)"),
        ("clip(high=0.28,low=0.1)", "clip(high=0.28,low=0.1)"),
        ("mis(low=1/8,cap=8.0)", "mis"),
        ("tis(cap=1e1)", "tis(cap=10)"),
        ("tis(cap=inf)", "tis(cap=inf)"),
        ("clip + ess", "clip+ess"),
        ("clip+veto+band", "clip+band+veto"),
        ("clip+band+veto", "clip+band+veto"),
        ("clip+grpo+seq-mean-token-mean+constant", "clip"),
        ("opsm", "clip+opsm"),
        ("opsm(delta=0.1)+ess", "clip+ess+opsm(delta=0.1)"),
        ("vcpo(ess=off)", "vcpo(ess=off)"),
        ("gspo(low=3e-4)+ess(base=0.55)", "gspo+ess(base=0.55)"),
        ("vespo:paper", "vespo+group-mean+seq-mean-token-sum"),
        ("vespo:paper+rloo", "vespo+rloo+seq-mean-token-sum"),
        ("clip+lr-matched(to=vcpo( ess = sqrt ))", "clip+lr-matched"),
        ("clip+lr-matched(to=clip+ess(base=0.5))", "clip+lr-matched(to=clip+ess(base=0.5))"),
        ("fipo(high_only=off)", "fipo(high_only=off)"),
    ],
)
def test_canonical_spelling(text: str, canonical: str) -> None:
    method = parse_method(text)
    assert method.canonical == canonical
    assert parse_method(canonical).canonical == canonical
    assert parse_method(canonical) == method


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("clp", 0, ["unknown method 'clp'", "did you mean clip"]),
        ("off_policy_tis", 0, ["unknown method 'off_policy_tis': it is called tis or token-tis here"]),
        ("clip+Token-Mask", 5, ["unknown part 'Token-Mask': it is called icepop here"]),
        ("dapo", 0, ["it is called clip-higher here"]),
        ("grpo(eps=1)", 0, ["is a part, not a method"]),
        ("clip(hihg=3)", 5, ["no parameter 'hihg'", "did you mean high", "low (a number, 0 or more)"]),
        ("clip(high=abc)", 10, ["high=abc is not legal", "a number, 0 or more"]),
        ("clip(high=-1)", 10, ["is not legal"]),
        ("vcpo(ess=qrt)", 9, ["sqrt | linear | off"]),
        ("clip+vepso", 5, ["unknown part 'vepso'"]),
        ("clip+gspo", 5, ["method of its own"]),
        ("ess", 0, ["is a part, not a method", "reinforce+ess"]),
        ("clip(high)", 5, ["expected key=value", "high (a number, 0 or more)"]),
        ("clip+rloo+opo", 0, ["both set the baseline"]),
        ("clip:draft", 4, [":paper"]),
        ("clip+ess:paper", 8, [":paper"]),
        ("clip+lr-matched(to=vcpo(ess=qrt))", 28, ["sqrt | linear | off"]),
        ("gac(low=2)", 8, ["from 0 to 1"]),
        ("clip-cov(seed=1.5)", 14, ["whole number"]),
        ("fipo(high_only=maybe)", 15, ["on | off"]),
    ],
)
def test_errors_point_at_the_character_and_name_the_remedy(text: str, position: int, words: list[str]) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_method(text)
    assert caught.value.position == position
    for word in words:
        assert word in caught.value.problem
    assert "\n" not in str(caught.value)


def test_lists_are_cut_outside_parentheses_and_lose_duplicates() -> None:
    assert split_expressions("clip, clip(high=0.28,low=0.1) ,vcpo") == ["clip", "clip(high=0.28,low=0.1)", "vcpo"]
    assert [method.canonical for method in parse_methods("clip,clip(high=0.2),tis")] == ["clip", "tis"]


def test_all_names_every_method() -> None:
    everything = {method.canonical for method in parse_methods("all")}
    assert {"vcpo", "vespo", "clip+opsm", "reinforce+gac"} <= everything
    assert len(everything) > 45


def test_equal_meaning_is_equal_and_hashable() -> None:
    assert len({parse_method("clip(high=0.2)+ess"), parse_method("clip+ess(base=1)")}) == 1


@pytest.mark.parametrize("depth", [17, 100, 20_000])
def test_expressions_in_one_another_end_in_one_short_line(depth: int) -> None:
    text = "lr-matched(to=" * depth + "clip" + ")" * depth
    for one in (f"clip+{text}", text.replace("lr-matched(", "clip+lr-matched(")):
        with pytest.raises(ExpressionError, match="more than 16 brackets in one another") as caught:
            parse_method(one)
        assert len(str(caught.value)) < 700


def test_borrowing_from_a_borrower_is_read() -> None:
    text = "clip+lr-matched(to=clip+lr-matched(to=clip+lr-shuffled(to=tis)))"
    assert parse_method(text).canonical == text


def test_a_long_expression_is_shown_around_its_mistake() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_method(f"clip(high={'9' * 5000}x)")
    assert len(str(caught.value)) < 5700  # the value itself is named once, in full
    assert "marked: clip(high=>>>999" in str(caught.value)


@pytest.mark.parametrize("value", ["\u0663", "1_000", "\uff11\uff12", "\u00b2"])
def test_numbers_are_written_in_ascii_digits(value: str) -> None:
    with pytest.raises(ExpressionError, match="is not legal"):
        parse_method(f"clip(high={value})")
