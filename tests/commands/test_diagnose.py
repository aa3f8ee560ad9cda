"""`vcpo-bench diagnose` as a user types it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import call, refused
from foreign_runs import planted, rows_of, write_jsonl


@pytest.fixture
def collapsed(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "run.jsonl", rows_of(planted("lag and weights"), "vcpo-fork"))


def test_one_screen_and_a_page(collapsed: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = call("diagnose", str(collapsed), "--html", str(page))
    assert result.exit_code == 0, result.output
    assert "VERDICT collapsed, onset at step 150" in result.output
    assert "probable: lag and weights" in result.output
    assert "none is a verdict" in result.output
    text = page.read_text()
    assert text.count("<svg") == len(set(rows_of(planted("lag and weights"), "vcpo-fork")[0]))
    assert "http" not in text.replace("http-equiv", "")
    assert "<script" not in text


def test_json_and_the_exit_code(collapsed: Path) -> None:
    result = call("diagnose", str(collapsed), "--json", "--fail-on", "collapsed,dip")
    assert result.exit_code == 1
    answer = json.loads(result.output)
    assert answer["outcome"]["verdict"] == "collapsed"
    assert answer["causes"][0]["name"] == "lag and weights"
    assert call("diagnose", str(collapsed), "--fail-on", "stall").exit_code == 0


def test_a_reference_run(collapsed: Path, tmp_path: Path) -> None:
    reference = write_jsonl(tmp_path / "good.jsonl", rows_of(planted("healthy", seed=1), "verl"))
    result = call("diagnose", str(collapsed), "--baseline", str(reference), "--framework", "vcpo-fork")
    assert result.exit_code == 0, result.output
    assert "largest lag leaves the reference at step 120" in result.output
    assert "entropy leaves the reference" not in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fail-on", "dead"], "no such verdict"),
        (["--map", "reward"], "write COLUMN=KEY"),
        (["--map", "reward=a,reward=b"], "is there twice"),
        (["--framework", "x"], "known: areal"),
    ],
)
def test_bad_options_are_one_line(collapsed: Path, arguments: list[str], said: str) -> None:
    assert said in refused("diagnose", str(collapsed), *arguments)


def test_a_page_escapes_what_a_log_is_called(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "<b>run.jsonl", rows_of(planted("healthy"), "verl"))
    page = tmp_path / "page.html"
    assert call("diagnose", str(path), "--html", str(page)).exit_code == 0
    assert "<b>run" not in page.read_text()


@pytest.mark.parametrize("partial", [False, True])
def test_a_cell_of_ours(partial: bool, make_results: Callable[..., Path], tmp_path: Path) -> None:
    still_running = ["tis"] if partial else []
    folder = make_results(tmp_path, methods=["tis"], lags=[16], seeds=[0], controls=False, partial=still_running)
    (cell,) = (folder / "cells").iterdir()
    assert cell.name.endswith(".partial") == partial
    found = json.loads(call("diagnose", str(cell), "--json").output)
    assert found["framework"] == "vcpo-bench"
    assert found["outcome"]["column"] == "eval_reward"
    assert found["outcome"]["verdict"] == "collapsed"
    assert found["columns"]["ess_ratio"]["tag"] == "exact"


def test_a_folder_of_several_cells_is_an_index(make_results: Callable[..., Path], tmp_path: Path) -> None:
    folder = make_results(tmp_path, methods=["tis"], lags=[1, 16], seeds=[0], controls=False)
    for given in (folder, folder / "cells"):
        result = call("diagnose", str(given))
        assert result.exit_code == 0, result.output
        assert result.output.startswith("2 runs: ")


def test_a_cell_that_was_moved_is_refused_in_one_line(make_results: Callable[..., Path], tmp_path: Path) -> None:
    folder = make_results(tmp_path, methods=["tis"], lags=[16], seeds=[0], controls=False)
    (cell,) = (folder / "cells").iterdir()
    cell.rename(tmp_path / "moved")
    for given in (tmp_path / "moved", tmp_path):
        assert "put it back as RESULTS/cells/KEY" in refused("diagnose", str(given))


def test_many_runs_are_rows_the_worst_first(tmp_path: Path) -> None:
    for name, cause in (("a-good", "healthy"), ("b-bad", "lag and weights")):
        (tmp_path / "runs" / name).mkdir(parents=True)
        write_jsonl(tmp_path / "runs" / name / "metrics.jsonl", rows_of(planted(cause), "vcpo-fork"))
    (tmp_path / "runs" / "c-odd").mkdir()
    write_jsonl(tmp_path / "runs" / "c-odd" / "metrics.jsonl", [{"step": 1, "x": 1.0}])
    page = tmp_path / "index.html"
    result = call("diagnose", str(tmp_path / "runs"), "--html", str(page), "--fail-on", "collapsed")
    assert result.exit_code == 1
    rows = [line.split() for line in result.output.splitlines() if line[:2] in ("a-", "b-", "c-")]
    assert [row[:2] for row in rows] == [["b-bad", "collapsed"], ["a-good", "healthy"], ["c-odd", "not"]]
    assert rows[0][2:6] == ["150", "lag", "and", "weights"]
    assert set(rows[0][-1]) <= set("▁▂▃▄▅▆▇█")
    text = page.read_text()
    assert text.count("<svg") == 2
    assert "<script" not in text
    answers = json.loads(call("diagnose", str(tmp_path / "runs"), "--json").output)
    assert [one.get("problem", "")[:2] for one in answers] == ["", "", "no"]
    compared = call("diagnose", str(tmp_path / "runs"), "--baseline", str(tmp_path / "runs" / "a-good")).output
    assert "b-bad: " in compared
    assert "leaves the reference at step 120" in compared


def test_names_mapped_for_the_run_stay_mapped_where_the_reference_has_them(tmp_path: Path) -> None:
    rows = [{"step": n, "score": 0.5, "grad_norm": 1.0, "raw_grad_norm": 5.0} for n in range(100)]
    run = write_jsonl(tmp_path / "run.jsonl", [{**row, "my_lag": 1.0} for row in rows])
    reference = write_jsonl(tmp_path / "reference.jsonl", rows)
    names = "reward=score,grad_norm=raw_grad_norm,lag_mean=my_lag"
    result = call("diagnose", str(run), "--map", names, "--baseline", str(reference))
    assert result.exit_code == 0, result.output
    assert "No signal leaves the range of the reference run" in result.output
    assert f"--baseline {reference}: has no my_lag" in result.stderr
    assert f"--baseline {tmp_path / 'none.jsonl'}" in refused(
        "diagnose", str(run), "--map", names, "--baseline", str(tmp_path / "none.jsonl")
    )


def test_a_column_in_the_log_that_is_not_mapped_is_named_by_its_own_name(tmp_path: Path) -> None:
    rows = [{"step": n, "score": 0.5, "entropy": 1.0, "lag_max": 4.0} for n in range(100)]
    result = call("diagnose", str(write_jsonl(tmp_path / "run.jsonl", rows)), "--map", "reward=score")
    assert "add entropy=entropy to --map" in result.output
    assert "lag_mean=lag_max" not in result.output


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_table_with_another_separator_is_read(separator: str, tmp_path: Path) -> None:
    lines = [separator.join(("step", "reward")), *(f"{n}{separator}{float(n < 100)}" for n in range(200))]
    (tmp_path / "run.csv").write_text("\n".join(lines))
    result = call("diagnose", str(tmp_path / "run.csv"), "--map", "reward=reward")
    assert "VERDICT collapsed, onset at step 100" in result.output
    assert "up to step 199" in result.output
    (tmp_path / "twice.csv").write_text("\n".join(f"{line}{separator}{line}" for line in lines))
    assert "two columns are called step" in call("diagnose", str(tmp_path / "twice.csv")).stderr


def test_the_page_begins_with_what_happened_and_what_to_try(tmp_path: Path) -> None:
    gap = [0.01 if step < 90 else 0.5 for step in range(200)]
    rewards = [0.6 if step < 150 else 0.02 for step in range(200)]
    rows = [
        {"step": step, "critic/score/mean": rewards[step], "training/rollout_probs_diff_mean": gap[step]}
        for step in range(200)
    ]
    page = tmp_path / "page.html"
    assert call("diagnose", str(write_jsonl(tmp_path / "run.jsonl", rows)), "--html", str(page)).exit_code == 0
    text = page.read_text()
    places = [text.index(said) for said in ("Engine gap up from step 90", "Try next", "What moved", "<h2>Causes")]
    assert places == sorted(places)
    curves = text[text.index("What moved") :].split("<svg")[1:3]
    assert [">log</text>" in one for one in curves] == [False, True], "the reward is not, the gap is on a log axis"
