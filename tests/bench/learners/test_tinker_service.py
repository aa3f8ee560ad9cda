"""The connection to a Tinker server: slow answers are waited for while it lives, and secrets stay inside."""

import threading
import time

import pytest
import tinker_cells

from vcpo_bench.bench.learners.tinker_api import service
from vcpo_bench.bench.learners.tinker_api.service import Service


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> tinker_cells.Line:
    monkeypatch.setattr(service, "POLL_SECONDS", 0.02)
    return tinker_cells.connect(monkeypatch)[1]


def test_a_slow_answer_is_waited_for_while_the_server_lives(line: tinker_cells.Line) -> None:
    def slow() -> str:
        time.sleep(0.5)  # more than twice the patience
        return "done"

    assert Service(tinker_cells.URL).call("sample", slow) == "done"
    assert ("GET", "/api/v1/healthz", None) in line.requests


def test_a_server_that_is_back_within_the_patience_was_never_away(line: tinker_cells.Line) -> None:
    line.away = True
    threading.Timer(0.1, lambda: setattr(line, "away", False)).start()
    assert Service(tinker_cells.URL).call("sample", lambda: time.sleep(0.5) or "done") == "done"


def test_an_answer_that_never_comes_ends_with_the_server(line: tinker_cells.Line) -> None:
    line.away = True
    never = threading.Event()
    with pytest.raises(RuntimeError, match=r"tinker_server_away: .* has not answered for 0\.2 s, at sample"):
        Service(tinker_cells.URL).call("sample", never.wait)
    never.set()


def test_what_a_server_repeats_of_a_secret_is_hidden(line: tinker_cells.Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(service.KEY_VARIABLE, "tml-very-secret")
    found = Service("http://server.test:8000")

    def refused() -> None:
        raise ValueError("no such key: tml-very-secret\nask your administrator")

    with pytest.raises(RuntimeError, match="tinker_request_failed") as problem:
        found.call("forward", refused)
    assert "very-secret" not in str(problem.value)
    assert "no such key: *** ask your administrator" in str(problem.value)
