"""Damaged, ambiguous and unreadable input: one sentence that says what to do, or read right."""

import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from foreign_runs import planted, rows_of, write_jsonl

from vcpo_bench.analysis.diagnosis import diagnose
from vcpo_bench.analysis.logs import read_run
from vcpo_bench.analysis.logs.readers.labelled_lines import LabelledLines, LabelledRow
from vcpo_bench.analysis.logs.readers.stores import _confine
from vcpo_bench.analysis.logs.values import number
from vcpo_bench.errors import UsageError


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.jsonl", b"", "is empty"),
        ("text.jsonl", b"hello\nworld\n", "holds no JSON object"),
        ("words.log", b"no metrics here\n", "no line holds metrics"),
        ("model.pt", b"\x80\x02}q\x00.", "loading one executes code"),
        ("run.pkl", b"\x80\x04}.", "loading one executes code"),
        ("disguised", b"\x80\x04}.", "loading one executes code"),
        ("run.jsonl.gz", b"\x1f\x8b\x08", "is compressed; unpack it"),
        ("rows.json", b'[{"step": 1}]', "each of its rows on a line"),
        ("a.swanlab", b"x", "export the run as CSV"),
        ("trainer_state.json", b'{"log_history": [', "damaged at line 1"),
        ("other.db", b"SQLite format 3\0" + bytes(100), "sqlite cannot read it"),
        ("one.csv", b"reward\n1\n", "no header"),
        ("words.jsonl", b'{"a": "b"}\n', "holds no number"),
        ("foreign.jsonl", b'{"step": 1, "my_score": 2.0}\n', "--map reward=my_score"),
        ("runs.csv", b"Step,a - reward,b - reward\n1,2,3\n", "several runs (a, b)"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UsageError) as error:
        read_run(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_tabs_separate_columns_and_a_mapped_column_without_a_number_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("step\tscore\n1\t0.5\n", encoding="utf-8")
    assert read_run(tmp_path / "a.tsv", mapping={"reward": "score"}).series["reward"].values.tolist() == [0.5]
    (tmp_path / "b.csv").write_text("step;score\n1;0,5\n", encoding="utf-8")
    with pytest.raises(UsageError, match="--map reward=score: holds no number"):
        read_run(tmp_path / "b.csv", mapping={"reward": "score"})


def test_a_path_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match="nothing is read over the network"):
        read_run("https://example.org/runs/1")
    with pytest.raises(UsageError, match="does not exist"):
        read_run("no/such/run")


def test_a_folder_without_a_log(tmp_path: Path) -> None:
    (tmp_path / "optimizer.pt").write_bytes(b"x")
    with pytest.raises(UsageError, match="1 pickles are not read"):
        read_run(tmp_path)


def test_an_unknown_framework_lists_the_known_ones(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", rows_of(planted("healthy"), "verl"))
    with pytest.raises(UsageError, match=r"known: areal, .*tinker-cookbook, .*verl"):
        read_run(path, "megatron")


def test_an_unknown_name_of_a_map_lists_what_there_is(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"my_score": 1.0}])
    with pytest.raises(UsageError, match="it has step, my_score"):
        read_run(path, mapping={"reward": "score"})
    with pytest.raises(UsageError, match="no such column"):
        read_run(path, mapping={"rewards": "my_score"})
    assert read_run(path, mapping={"reward": "my_score"}).framework == "mapped"


def test_of_many_names_a_map_may_mean_twenty_are_listed(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{f"name{i:02}": 1.0 for i in range(30)}])
    listed = ", ".join(["step", *(f"name{i:02}" for i in range(19))])
    with pytest.raises(UsageError, match=f"it has {listed}$"):
        read_run(path, mapping={"reward": "score"})


def test_two_runs_in_one_folder_are_asked_about(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_jsonl(tmp_path / name / "log.jsonl", rows_of(planted("healthy"), "verl"))
    with pytest.raises(UsageError, match=r"holds 2 runs; give one of them \(.*/a, "):
        read_run(tmp_path)


def test_half_a_last_line_and_a_corrupt_byte_are_counted(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", rows_of(planted("entropy"), "verl"))
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:50], b'{"step": 50, \xff\xfe', *lines[51:-1], lines[-1][:20]]))
    found = diagnose(read_run(path))
    assert found.verdict == "collapsed"
    assert any("2 lines of a.jsonl could not be read" in note for note in found.run.notes)


def test_a_log_of_nothing_but_nan_is_no_verdict(tmp_path: Path) -> None:
    rows = [{"critic/score/mean": float("nan"), "actor/pg_loss": float("nan")} for _ in range(60)]
    found = diagnose(read_run(write_jsonl(tmp_path / "a.jsonl", rows)))
    assert found.verdict == "cannot tell"
    assert found.causes[0].name == "gradient or non-finite"
    json.dumps(found.as_dict(), allow_nan=False)


def test_a_run_that_is_too_short(tmp_path: Path) -> None:
    found = diagnose(read_run(write_jsonl(tmp_path / "a.jsonl", rows_of(planted("entropy"), "slime")[:25])))
    assert found.verdict == "cannot tell"
    assert "fewer than the 4" in found.outcome.reason


def test_rewards_without_a_zero_are_not_judged(tmp_path: Path) -> None:
    run = planted("entropy")
    run["reward"] = run["reward"] * 10 - 7 + np.linspace(0, 1e-3, run["reward"].size)  # never twice at its floor
    found = diagnose(read_run(write_jsonl(tmp_path / "a.jsonl", rows_of(run, "slime"))))
    assert found.verdict == "cannot tell"
    assert "--map eval_reward=KEY" in found.outcome.reason
    run["reward"] = np.clip((run["reward"] + 7) / 5 - 1, -1, 1)
    assert diagnose(read_run(write_jsonl(tmp_path / "a.jsonl", rows_of(run, "slime")))).verdict == "collapsed"


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("np.float64(0.2)", 0.2),
        ("tensor(0.5, device='cuda:0')", 0.5),
        ("Infinity", float("inf")),
        ("-1e-05", -1e-5),
        (True, 1.0),
        (3, 3.0),
        ("text", None),
        (None, None),
        ([1.0], None),
        (10**400, None),
    ],
)
def test_numbers_as_loggers_write_them(raw: object, value: float | None) -> None:
    assert number(raw) == value


def test_nan_is_a_number() -> None:
    assert np.isnan(number("NaN") or 0.0)
    assert np.isnan(number("np.float32(nan)") or 0.0)


def test_wandb_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run-abc.wandb").write_bytes(b":W&B")
    monkeypatch.setattr("vcpo_bench.analysis.logs.readers.wandb_offline.sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"pip install '\.\[wandb\]' in a checkout"):
        read_run(tmp_path)


def test_a_truncated_wandb_file_says_how_much_was_recovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"_step": 2 * t, "training/global_step": t, "critic/score/mean": 0.5, "actor/pg_loss": "NaN"} for t in range(13)
    ]
    printed = [json.dumps({"num": t, "type": "history", "history": {"item": row}}) for t, row in enumerate(rows)]
    answer = tmp_path / "answer"
    answer.write_text("\n".join(['{"num": 0, "type": "header"}', *printed]))
    program = tmp_path / "wandb"
    program.write_text(
        f"#!/bin/sh\ncat '{answer}'\necho 'wandb leet inspect: reached the end of an incomplete file' >&2\n"
    )
    program.chmod(0o755)
    (tmp_path / "run-abc.wandb").write_bytes(b":W&B")
    monkeypatch.setattr("vcpo_bench.analysis.logs.readers.wandb_offline.sys.executable", str(tmp_path / "python"))
    run = read_run(tmp_path)
    assert run.series["reward"].steps.tolist() == list(range(13))
    assert any("13 rows were recovered; reached the end" in note for note in run.notes)


def database(path: Path, statements: Sequence[str]) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return path


def test_a_view_that_never_ends_is_not_read(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT 'a', n, '{}' FROM r"
    path = database(tmp_path / "a.db", [f"CREATE VIEW metrics(run_name, step, metrics) AS {endless}"])
    with pytest.raises(UsageError, match="no plain table"):
        read_run(path)


def test_a_schema_whose_names_are_no_text_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE metrics (run_uuid, key, value, step, is_nan, timestamp)")
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_master SET name = CAST(x'ca0aa5' AS TEXT), sql = 'CREATE nothing'")
    with pytest.raises(UsageError, match=r"sqlite cannot read it \(") as refused:
        read_run(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("row", ["[1]", "5", "null", '"text"', "{", "[" * 100_000])
def test_a_row_of_trackio_that_is_no_object_is_counted(row: str, tmp_path: Path) -> None:
    good = json.dumps(rows_of(planted("healthy"), "trl")[0])
    made = "CREATE TABLE metrics (run_name, step, metrics)"
    rows = f"INSERT INTO metrics VALUES ('a', 1, '{good}'), ('a', 2, '{row}')"
    run = read_run(database(tmp_path / "a.db", [made, rows]))
    assert "1 line of a.db could not be read and was left out" in run.notes


@pytest.mark.parametrize(
    "row", ["'k', 1, 'x'", "'k', 1, NULL", "NULL, 1, 1", "5, 1, 1", "x'00', 1, 1", "'k', 1, 9e999"]
)
def test_a_row_of_mlflow_without_a_name_or_a_step_is_counted(row: str, tmp_path: Path) -> None:
    made = "CREATE TABLE metrics (run_uuid, key, value, step, is_nan, timestamp)"
    rows = f"INSERT INTO metrics VALUES ('a', 'critic/score/mean', 0.5, 1, 0, 0), ('a', {row}, 0, 0)"
    run = read_run(database(tmp_path / "a.db", [made, rows]), mapping={"reward": "critic/score/mean"})
    assert "1 line of a.db could not be read and was left out" in run.notes


def test_a_quote_that_is_never_closed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('step,critic/score/mean,text\n1,0.5,a\n2,0.5,"b\n3,0.5,c\n')
    run = read_run(path, mapping={"reward": "critic/score/mean"})
    assert run.series["reward"].steps.tolist() == [1.0]
    assert any("the quote that opens in line 3 is never closed" in note for note in run.notes)


def test_a_cell_of_any_length_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f'step,critic/score/mean,text\n1,0.5,"{"x" * 300_000}"\n2,0.25,b\n')
    run = read_run(path, mapping={"reward": "critic/score/mean"})
    assert run.series["reward"].values.tolist() == [0.5, 0.25]


@pytest.mark.parametrize("text", ["\x1b]", "{'", "{'a': ", "step:1 - ", "(a pid=1"])
def test_a_console_of_one_mark_is_read_in_one_pass(text: str, tmp_path: Path) -> None:
    """Read twice over for each mark, a million of them would take hours."""
    path = tmp_path / "a.log"
    path.write_text(text * 1_000_000)
    with pytest.raises(UsageError):
        read_run(path)


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(UsageError, match="a pipe or a device"):
        read_run(tmp_path / "a.jsonl")


def test_links_back_to_a_folder_are_followed_once(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", rows_of(planted("entropy"), "verl"))
    for name in ("one", "another"):
        (tmp_path / name).symlink_to(tmp_path)
    assert read_run(tmp_path).framework == "verl"


def test_numbers_of_hundreds_of_digits_are_none(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    row = {"step": 1, "reward": 0.5, "frac_reward_zero_std": 0.1, "loss": 10**400}
    path.write_text(json.dumps({"logging_steps": 10**400, "log_history": [row]}))
    assert read_run(path).series["reward"].values.tolist() == [0.5]


def test_a_long_line_of_one_character_takes_no_longer_than_its_length() -> None:
    """A pattern that is tried at each place of a run of `=` takes the square of it: hours for 3 MB."""
    for line in ("=" * 3_000_000, "===== Step " + "=" * 3_000_000):
        assert LabelledLines().take(line) is None
    lines = LabelledLines()
    read = [lines.take(line) for line in (f"{'=' * 9} Step 3/100 {'=' * 9}", "Training Results:", "  * Loss: 0.5")]
    assert read == [None, None, LabelledRow(3.0, {"Loss": 0.5})]


def test_a_database_larger_than_sqlite_can_bound_is_still_confined(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        _confine(database, 2**33)
        assert database.execute("SELECT 1").fetchone() == (1,)
