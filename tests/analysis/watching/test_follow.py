"""A log is followed through everything that happens to its files."""

import json
from pathlib import Path

import pytest
from foreign_runs import planted, rows_of

from vcpo_bench.analysis.watching import Follower
from vcpo_bench.errors import UsageError

ROWS = rows_of(planted("healthy"), "verl")


def write(path: Path, begin: int, end: int, mode: str = "a") -> None:
    with path.open(mode) as file:
        for step in range(begin, end):
            file.write(json.dumps({"step": step, "data": ROWS[step]}) + "\n")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "run" / "log.jsonl"


def test_a_file_that_does_not_exist_yet_is_waited_for_and_then_grows(log: Path) -> None:
    follower = Follower(log)
    assert not follower.poll()
    assert "does not exist" in follower.waiting
    log.parent.mkdir()
    log.touch()
    assert not follower.poll()
    assert "is empty" in follower.waiting
    write(log, 0, 5)
    assert follower.poll()
    assert not follower.waiting
    assert not follower.poll()  # nothing new
    write(log, 5, 9)
    assert follower.poll()
    assert follower.run is not None
    assert follower.run.last_step == 8
    assert follower.went_back is None


def test_half_a_last_line_is_read_when_it_is_whole(log: Path) -> None:
    log.parent.mkdir()
    write(log, 0, 5)
    text = json.dumps({"step": 5, "data": ROWS[5]}) + "\n"
    with log.open("a") as file:
        file.write(text[:30])
    follower = Follower(log)
    assert follower.poll()
    assert follower.run is not None
    assert follower.run.last_step == 4
    assert not follower.complete
    with log.open("a") as file:
        file.write(text[30:])
    assert follower.poll()
    assert follower.run.last_step == 5
    assert follower.complete


def test_a_rotated_file_keeps_its_past(log: Path) -> None:
    log.parent.mkdir()
    write(log, 0, 50)
    follower = Follower(log)
    follower.poll()
    log.rename(log.with_name("log.jsonl.1"))
    assert not follower.poll()
    assert "does not exist" in follower.waiting
    for end in (60, 70):
        write(log, end - 10, end)
        assert follower.poll()
        assert follower.run is not None
        assert list(follower.run.series["reward"].steps) == list(range(end))
        assert follower.went_back is None


def test_a_file_opened_again_by_a_resumed_run_replaces_what_came_after(log: Path) -> None:
    log.parent.mkdir()
    write(log, 0, 50)
    follower = Follower(log)
    follower.poll()
    write(log, 30, 33, "w")
    assert follower.poll()
    assert follower.run is not None
    assert follower.went_back == 30
    assert list(follower.run.series["reward"].steps) == list(range(33))
    write(log, 33, 60)
    assert follower.poll()
    assert follower.went_back is None
    assert follower.run.last_step == 59
    assert len(follower.run.resumes) == 1


def test_a_file_that_goes_back_ends_where_it_was_last_written(log: Path) -> None:
    log.parent.mkdir()
    write(log, 0, 80)
    follower = Follower(log)
    follower.poll()
    write(log, 40, 60)
    assert follower.poll()
    assert follower.run is not None
    assert follower.run.last_step == 59
    assert follower.went_back == 40  # and not the first step of the file
    write(log, 60, 62)
    assert follower.poll()
    assert follower.went_back is None
    assert list(follower.run.series["reward"].steps) == list(range(62))


def test_a_second_log_in_the_folder_is_the_next_part_of_the_run(log: Path) -> None:
    log.parent.mkdir()
    write(log, 0, 50)
    follower = Follower(log.parent)
    follower.poll()
    write(log.with_name("after_resume.jsonl"), 40, 80)
    assert follower.poll()
    assert follower.run is not None
    assert follower.run.last_step == 79
    assert follower.went_back == 40


def test_what_waiting_cannot_mend_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "run.pkl").write_bytes(b"\x80\x04}.")
    with pytest.raises(UsageError, match="loading one executes code"):
        Follower(tmp_path / "run.pkl").poll()
    for name in ("a.jsonl", "b.jsonl"):
        write(tmp_path / name, 0, 5)
    with pytest.raises(UsageError, match="holds 2 runs"):
        Follower(tmp_path).poll()


def test_a_log_whose_first_names_say_nothing_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 0, "my_thing": 1.0}\n')
    follower = Follower(path)
    assert not follower.poll()
    assert "no known framework" in follower.waiting
    write(path, 1, 4)
    assert follower.poll()


@pytest.mark.parametrize("place", [".", "/"])
def test_a_folder_whose_path_has_no_name_is_read_like_any_other(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "log.jsonl", 0, 5)
    follower = Follower(place)
    if place == ".":
        assert follower.poll()
    else:
        assert str(follower._place()) == place
