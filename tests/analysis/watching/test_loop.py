"""The loop tells each thing once, in the run's own step, whatever happens while it waits."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from foreign_runs import planted, rows_of

from vcpo_bench.analysis.monitoring.calibration import Calibration, load_calibrations
from vcpo_bench.analysis.monitoring.detectors import Detector
from vcpo_bench.analysis.watching import Follower, RunEvent, RunWatch
from vcpo_bench.analysis.watching.loop import Note, watch_log
from vcpo_bench.errors import UsageError

ROWS = rows_of(planted("lag and weights"), "vcpo-fork")
DETECTOR = Calibration(Detector("ess", 1, 1.0), None, None, None, "nothing", 0, 0)
PACKAGED = next(one for one in load_calibrations() if one.detector.signal == "kl_length")


class EndOfTestError(Exception):
    """Nothing more happens to the log."""


def append(path: Path, begin: int, end: int, mode: str = "a") -> None:
    with path.open(mode) as file:
        file.writelines(json.dumps({"step": step, "data": ROWS[step]}) + "\n" for step in range(begin, end))


def told(
    path: Path, happenings: list[Callable[[], None]], quiet: int = 3, detector: Calibration = DETECTOR
) -> list[RunEvent | Note]:
    """What the loop says while one thing after another happens to the log between two looks."""
    waiting: Iterator[Callable[[], None]] = iter([*happenings, *[lambda: None] * quiet])

    def sleep(seconds: float) -> None:
        happen = next(waiting, None)
        if happen is None:
            raise EndOfTestError
        happen()

    said: list[RunEvent | Note] = []
    with pytest.raises(EndOfTestError):
        said.extend(watch_log(Follower(path), RunWatch([detector]), 0.0, sleep=sleep))  # keeps what came before the end
    return said


def events(said: list[RunEvent | Note]) -> list[tuple[str, float, bool]]:
    return [(one.kind, one.step, one.old) for one in said if isinstance(one, RunEvent)]


def test_each_alarm_is_told_once_when_its_step_is_complete(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    steps = [lambda n=n: append(log, n, n + 1) for n in range(115, 125)]
    said = told(log, [lambda: append(log, 0, 115), *steps])
    assert events(said) == [("alarm", 120.0, False)]
    assert isinstance(said[0], Note)
    assert "does not exist" in said[0].text


def test_the_newest_step_is_judged_when_nothing_more_comes(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    append(log, 0, 119)
    assert events(told(log, [lambda: append(log, 119, 121)], quiet=1)) == []
    append(log, 0, 119, "w")
    assert events(told(log, [lambda: append(log, 119, 121)])) == [("alarm", 120.0, False)]


def test_a_fall_of_the_reward_is_told_once(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    steps = [lambda n=n: append(log, n, n + 10) for n in range(130, 230, 10)]
    said = told(log, [lambda: append(log, 0, 130), *steps])
    assert [one[:2] for one in events(said)] == [("alarm", 120.0), ("collapsed", 150.0)]


def test_after_a_resume_what_follows_is_told_anew(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    append(log, 0, 130)
    said = told(log, [lambda: append(log, 110, 115), lambda: append(log, 115, 130)])
    assert events(said) == [("alarm", 120.0, True), ("alarm", 120.0, False)]
    assert Note("the run was resumed at step 110") in said


def test_rotation_and_a_vanished_file_lose_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    append(log, 0, 100)
    said = told(
        log,
        [
            lambda: append(log, 100, 110),
            lambda: log.rename(log.with_name("log.jsonl.1")) and None,
            lambda: append(log, 110, 118),
            lambda: append(log, 118, 125),
        ],
    )
    assert events(said) == [("alarm", 120.0, False)]


def test_a_folder_whose_log_is_replaced_by_garbage_for_a_moment(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    append(log, 0, 110)
    whole = tmp_path / "whole"
    said = told(
        log,
        [
            lambda: shutil.copy(log, whole) and log.write_bytes(b"\0\1\2") and None,  # type: ignore[func-returns-value]
            lambda: shutil.copy(whole, log) and None,  # type: ignore[func-returns-value]
            lambda: append(log, 110, 125),
        ],
    )
    assert events(said) == [("alarm", 120.0, False)]
    assert any("no JSON object" in one.text for one in said)


def test_the_end(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    append(log, 0, 125)
    said = list(watch_log(Follower(log), RunWatch([DETECTOR]), 0.01, idle=0.03))
    assert events(said) == [("alarm", 120.0, True)]
    assert said[-1] == Note("nothing new for 0.03 s, at step 124")
    with pytest.raises(UsageError, match="nothing could be read within"):
        list(watch_log(Follower(tmp_path / "none"), RunWatch([DETECTOR]), 0.01, idle=0.03))


def test_numbers_that_are_not_finite_are_told_with_their_third_row(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    fine = {"critic/score/mean": 0.5, "actor/pg_loss": 0.1, "actor/grad_norm": 1.0}
    broken = {"critic/score/mean": 0.5, "actor/pg_loss": float("nan"), "actor/grad_norm": float("nan")}

    def write(row: dict[str, float], step: int) -> None:
        with log.open("a") as file:
            file.write(json.dumps({"step": step, "data": row}) + "\n")

    rows = [fine] * 20 + [broken] * 4
    said = told(log, [lambda row=row, step=step: write(row, step) for step, row in enumerate(rows)])
    falls = [at for at, one in enumerate(said) if isinstance(one, RunEvent)]
    assert [(said[at].kind, said[at].step) for at in falls] == [("collapsed", 20.0)]
    assert said[falls[0]].text == "COLLAPSED at step 20: gradient norm and loss are not finite from step 20 to the end"


def test_a_reward_on_its_floor_is_told_at_once_in_a_short_line(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    rewards = [0.3 + step % 5 / 10 for step in range(40)] + [0.0] * 4

    def write(step: int) -> None:
        with log.open("a") as file:
            row = {"critic/score/mean": rewards[step], "actor/pg_loss": 0.1}
            file.write(json.dumps({"step": step, "data": row}) + "\n")

    said = told(log, [lambda step=step: write(step) for step in range(43)])
    (fall,) = [one for one in said if isinstance(one, RunEvent)]
    assert (fall.kind, fall.step) == ("collapsed", 40.0)
    assert len(fall.text) <= 120


def test_a_signal_that_falls_silent_while_responses_grow_is_said_once(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"

    def write(begin: int, length: float) -> None:
        row = {"critic/score/mean": 0.5, "rollout_corr/k3_kl": 0.0009, "response_length/mean": length}
        with log.open("a") as file:
            file.writelines(json.dumps({"step": step, "data": row}) + "\n" for step in range(begin, begin + 30))

    write(0, 800.0)
    said = told(log, [lambda: write(30, 9000.0), lambda: write(60, 9500.0)], detector=PACKAGED)
    assert events(said) == []
    silent = [one.text for one in said if isinstance(one, Note) and "kl_length" in one.text]
    assert silent == ["no alarm can come from kl_length: responses of 9,000 tokens, tuned on 4 to 24"]
