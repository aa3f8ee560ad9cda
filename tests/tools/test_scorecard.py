"""The scorecard as a whole: its facts can be planned, its tables are kept whole, its pages say what the code says."""

import importlib
import re
from pathlib import Path

import pandas as pd
import pytest
from scorecard import collect as collecting
from scorecard.catalog import all_facts
from scorecard.cells import Block, planned
from scorecard.evidence import cited, evidence, run_sets
from scorecard.fact import Fact, Part, Verdict, combined
from scorecard.places import DOCS, FOLDER, PAGE, REGISTRATION, VERDICTS
from scorecard.plan import stages
from scorecard.render import anchor, page
from scorecard.rules import above, rank_correlation, share_above, within
from scorecard.tables import EVAL_COLUMNS, UPDATE_COLUMNS, Tables
from scorecard_tables import FACTS, Story, tables

from vcpo_bench.analysis.results import Results
from vcpo_bench.errors import UsageError

BUDGET = 650 * 300
"""Updates of 16 prompts that the study was allowed."""


def test_every_fact_is_there_and_the_runs_of_all_fit_the_budget() -> None:
    assert sorted(FACTS) == list(range(1, 26))
    plan = stages(all_facts())
    assert [stage.fact.order for stage in plan] == sorted(stage.fact.order for stage in plan)
    cells = [cell for stage in plan for cell in stage.cells]
    assert len({cell.key for cell in cells}) == len(cells)
    assert sum(cell.updates * cell.config.prompts / 16 for cell in cells) < BUDGET
    assert not any(cell.control for cell in cells)
    for fact in FACTS.values():
        assert fact.blocks or fact.pages
        assert all((DOCS / page).exists() for page in fact.pages if "phase" not in page)


def test_a_fact_is_not_judged_before_all_of_its_runs_have_ended() -> None:
    fact = FACTS[17]
    world = tables(fact.blocks, lambda _: Story())
    assert {part.verdict for part in fact.parts(world)} != {"not run"}
    fewer = Tables(world.runs.iloc[1:], world.evals, world.updates, world.docs)
    assert [(part.verdict, part.figure) for part in fact.parts(fewer)] == [("not run", "1 run is missing")]


def test_runs_of_other_settings_are_not_taken_for_those_of_a_block() -> None:
    block = Block(("reinforce",), "walk", (16,), 4e-4, seeds=(0, 1))
    world = tables([block], lambda _: Story())
    for column, other in (("lr", 8e-4), ("steps", 600), ("prompts", 8), ("regime", "random"), ("staleness", 4)):
        assert block.rows(world.runs.assign(**{column: other})).empty
    assert len(block.rows(world.runs)) == 2


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        (["reproduced", "reproduced"], "reproduced"),
        (["refuted", "cannot be tested here"], "refuted"),
        (["reproduced", "refuted"], "undecided"),
        (["reproduced", "undecided"], "undecided"),
        (["cannot be tested here"], "cannot be tested here"),
        (["not run"], "not run"),
    ],
)
def test_a_fact_has_a_verdict_only_where_its_parts_agree(verdicts: list[Verdict], whole: str) -> None:
    assert combined([Part("one", verdict, "") for verdict in verdicts]) == whole


def test_bars_are_crossed_by_whole_intervals() -> None:
    assert [above(*ends) for ends in ((1, 2), (-2, -1), (-1, 1))] == ["reproduced", "refuted", "undecided"]
    nan = float("nan")
    assert above(nan, nan) == "undecided"
    assert [within(*ends, 0, 1) for ends in ((0, 1), (1.5, 2), (0.5, 2))] == ["reproduced", "refuted", "undecided"]
    assert share_above("a", "{}", 0, 0, 0.5).verdict == "undecided"
    assert rank_correlation([1, 2, 3], [5, 5, 5]) == 0.0
    assert rank_correlation([1, 2, 3], [1, 4, 9]) == pytest.approx(1.0)


def recorded(block: Block, signals: bool) -> tuple[Results, Fact]:
    """What a results folder with the cells of a block holds, one of them failed, and a foreign cell."""
    cells = [*planned([block]).values(), *planned([Block(("tis",), "walk", (4,), 1e-3, seeds=(9,))]).values()]
    rows = [cell.config.model_dump() | {"key": cell.key, "path": "", "status": "completed"} for cell in cells]
    rows[0]["status"] = "error"
    results = Results([], pd.DataFrame(rows))
    per_step = [{"key": cell.key, "step": step, "extra": 1.0} for cell in cells for step in (10, 0)]
    results.__dict__["evals"] = pd.DataFrame(per_step).assign(**dict.fromkeys(EVAL_COLUMNS, 1 / 3))
    results.__dict__["steps"] = pd.DataFrame(per_step).assign(**dict.fromkeys(UPDATE_COLUMNS, 2e-7 / 3))
    return results, Fact(1, "", 1, "", "", "", lambda _: [], (block,), signals=signals)


@pytest.mark.parametrize("signals", [True, False])
def test_collecting_keeps_what_judges_read_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signals: bool
) -> None:
    block = Block(("reinforce",), "walk", (16,), 4e-4, seeds=(0, 1, 2))
    results, fact = recorded(block, signals)
    monkeypatch.setattr(collecting, "load", lambda _: results)
    assert collecting.collect(tmp_path, tmp_path / "out", [fact]) == 2
    read = Tables.read(tmp_path / "out", DOCS)
    assert len(block.rows(read.runs)) == 2
    assert read.missing([block]) == 1
    assert list(read.curve(0)["step"]) == [0, 10]
    assert len(read.updates) == (4 if signals else 0)
    if signals:
        assert read.signals(1)["grad_norm"].tolist() == pytest.approx([2e-7 / 3] * 2, rel=1e-3)
    first = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    collecting.collect(tmp_path, tmp_path / "out", [fact])
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}


def test_no_table_of_updates_is_without_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pandas would read its columns as objects, and with them those of all tables."""
    runs = Block(("reinforce",), "walk", (16,), 4e-4, seeds=tuple(range(100)))
    results, fact = recorded(runs, signals=True)
    keys = set(results.cells["key"].iloc[40:])
    results.__dict__["steps"] = results.steps[results.steps["key"].isin(keys)]
    monkeypatch.setattr(collecting, "load", lambda _: results)
    collecting.collect(tmp_path, tmp_path, [fact])
    parts = [path.name for path in sorted(tmp_path.glob("updates-*"))]
    assert parts == [f"updates-{first}.csv.gz" for first in ("032", "064", "096")]
    assert str(Tables.read(tmp_path, DOCS).updates["grad_norm"].dtype) == "float64"


def test_runs_of_another_session_are_added_and_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, first, second = (
        tmp_path / "out",
        *(Block(("reinforce",), "walk", (16,), 4e-4, seeds=s) for s in ((0, 1, 2), (0, 3))),
    )
    for block, value in ((first, 0.25), (second, 0.5)):
        results, fact = recorded(block, signals=True)
        results.evals["sampled_reward"] = value
        monkeypatch.setattr(collecting, "load", lambda _, results=results: results)
        count = collecting.collect(tmp_path, out, [fact])
    read = Tables.read(out, DOCS)
    assert count == 3  # seed 0 failed in both
    assert read.runs["seed"].tolist() == [1, 2, 3]
    assert [read.curve(run)["sampled_reward"].iloc[-1] for run in read.runs["run"]] == [0.25, 0.25, 0.5]
    assert len(read.updates) == 6
    assert [cell.config.seed for cell in read.without_runs([*first.cells(), *second.cells()])] == [0, 0]


def test_the_page_renders_from_tables_with_every_kind_of_verdict() -> None:
    facts = [FACTS[number] for number in (10, 11, 13, 17, 18)]
    world = tables(FACTS[17].blocks, lambda c: Story(updates={"share_masked": 0.99 if c.seed < 4 else 0.1}))
    text, verdicts = page(PAGE.read_text(), facts, world)
    by_fact = verdicts.drop_duplicates("fact").set_index("fact")["fact_verdict"].to_dict()
    assert by_fact == {
        10: "reproduced",
        11: "refuted",
        13: "undecided",
        17: "undecided",
        18: "not run",
    }
    assert "Of 5 published facts: 1 reproduced, 1 refuted, 2 undecided, 0 cannot be tested here, 1 not run." in text
    assert "| 17 | [A geometric band masks everything](#17-a-geometric-band-masks-everything) | undecided |" in text
    assert "### 17. A geometric band masks everything\n\n**Published:** Masking rows outside" in text
    assert "**Here:** undecided (8 runs: R1).\n\n| part | verdict | figure |" in text
    assert "(16 runs: R2, R3)" in text
    assert "**Here:** **refuted** ([benchmarks/prefix_chain.md](../../benchmarks/prefix_chain.md))." in text
    assert verdicts["runs"].str.len().min() > 0
    with pytest.raises(ValueError, match="no line"):
        page("nothing", (), Tables.read(FOLDER, DOCS))


def test_each_set_of_runs_is_listed_once_with_the_facts_that_rest_on_it() -> None:
    names = run_sets(all_facts())
    assert list(names.values()) == [f"R{place}" for place in range(1, len(names) + 1)]
    rows = [line.split(" | ") for line in evidence(all_facts()).splitlines()[2:]]
    assert [row[0] for row in rows] == [f"| {name}" for name in names.values()]
    by_name = {row[0].removeprefix("| "): row[-1].removesuffix(" |").split(", ") for row in rows}
    for fact in FACTS.values():
        users = {names[block] for block in fact.blocks}
        assert users == {name for name, facts in by_name.items() if str(fact.number) in facts}
        there = Tables.empty(DOCS)
        assert all(page in cited(fact, names, there) for page in fact.pages)
    absent = Tables.empty(DOCS / "nowhere")
    assert cited(FACTS[6], names, absent) == "R1, R4"
    assert cited(FACTS[23], names, absent) == "`studies/phase/exponents.csv`, `studies/phase/runs.csv`"


def test_titles_make_the_anchors_of_their_headings() -> None:
    titles = [fact.title for fact in FACTS.values()]
    assert all(re.fullmatch(r"[A-Za-z0-9 ,-]{10,60}", title) for title in titles)
    assert len(set(titles)) == len(titles)
    assert anchor(FACTS[10]) == "10-prefix-chain-bias-of-token-weights"


def test_the_page_names_files_that_ship() -> None:
    assert {path.name for path in FOLDER.glob("updates*")} >= set(re.findall(r"updates-\d+\.csv\.gz", PAGE.read_text()))
    assert "`updates.csv.gz`" not in PAGE.read_text()


def test_the_page_and_its_verdicts_are_current() -> None:
    text, verdicts = page(PAGE.read_text(), all_facts(), Tables.read(FOLDER, DOCS))
    hint = "run: python tools/scorecard/page.py"
    assert text == PAGE.read_text(), hint
    assert verdicts.to_csv(index=False, float_format="%.6g") == VERDICTS.read_text(), hint


def test_the_registration_says_what_the_code_does() -> None:
    registration = importlib.import_module("scorecard.page").registration
    assert registration(REGISTRATION.read_text()) == REGISTRATION.read_text(), (
        "a rule or a run changed after it was fixed"
    )


def test_facts_are_chosen_by_number() -> None:
    chosen = importlib.import_module("scorecard.run").chosen
    assert [fact.number for fact in chosen("18, 2")] == [2, 18]
    assert len(chosen("")) == 25
    with pytest.raises(UsageError, match="there is no fact 99"):
        chosen("1,99")
