"""The live page: what it answers, to whom, and that it is drawn anew when a run advances."""

import http.client
import json
import math
import shutil
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vcpo_bench.reports.live.pages import Pages
from vcpo_bench.reports.live.runs import find_runs, name_of, state_of
from vcpo_bench.reports.live.server import make_server


@pytest.fixture
def runs(make_results: Callable[..., Path], tmp_path: Path) -> Path:
    """A folder with two runs, one of which is still training."""
    for name, partial in (("first", ()), ("<b>second", ("clip",))):
        make_results(
            tmp_path / name, methods=("vcpo", "clip"), lags=(1,), seeds=(0,), steps=30, controls=False, partial=partial
        )
    return tmp_path


def finish(run: Path) -> None:
    for path in (run / "cells").glob("*.partial"):
        for file in (path / "checkpoint-000050").iterdir():
            shutil.copy(file, path / file.name)
        facts = json.loads((path / "cell.json").read_text()) | {"status": "completed"}
        (path / "cell.json").write_text(json.dumps(facts))
        path.rename(path.with_name(path.name.removesuffix(".partial")))


def text_of(pages: Pages, path: str) -> str:
    found = pages.answer(path)
    assert found is not None, path
    return found[1]


def test_runs_stand_side_by_side_and_a_strangers_name_is_text(runs: Path) -> None:
    pages = Pages([runs])
    overview = text_of(pages, "/")
    assert overview.count('<section class="run">') == 2
    assert "2 cells ended, 0 not ended" in overview
    assert "1 cells ended, 1 not ended" in overview
    assert "highest final reward: " in overview
    assert "&lt;b&gt;second" in overview
    assert "<b>second" not in overview
    assert overview.count("<svg ") == 2


def test_a_report_follows_its_run(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs / "<b>second"
    pages, address = Pages([runs]), f"/{name_of(run)}/"
    before, page = text_of(pages, f"{address}state"), text_of(pages, address)
    assert before == state_of(run)
    assert "Preliminary: 1 of 2 runs not finished" in page
    assert "connect-src 'self'" in page
    assert page is text_of(pages, address), "drawn once for each state of the run"
    monkeypatch.setattr(time, "monotonic", lambda: math.inf)  # no drawing is kept for its own sake any more
    finish(run)
    assert text_of(pages, f"{address}state") != before
    assert "Preliminary" not in text_of(pages, address)


def test_a_run_without_a_checkpoint_and_a_folder_without_runs_say_so(runs: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    (empty / "cells" / "a.partial").mkdir(parents=True)
    assert "can be read from its first checkpoint on" in text_of(Pages([empty]), "/")
    assert "nothing to show yet" in text_of(Pages([empty]), f"/{name_of(empty)}/")
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    assert f"vcpo-bench run --out {nothing}" in text_of(Pages([nothing]), "/")


def test_links_to_runs_elsewhere_are_not_followed(runs: Path, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    (inside / "half").mkdir(parents=True)
    (inside / "linked").symlink_to(runs / "first")
    (inside / "half" / "cells").symlink_to(runs / "first" / "cells")
    assert list(find_runs([inside])) == []
    assert list(find_runs([runs / "first"])) == [runs / "first"]


@pytest.fixture
def port(runs: Path) -> Iterator[int]:
    server = make_server(Pages([runs]).answer)
    assert server.server_address[0] == "127.0.0.1", "no other machine reaches it"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield int(server.server_address[1])
    server.shutdown()
    server.server_close()
    thread.join()


def ask(port: int, path: str, method: str = "GET", host: str = "localhost") -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", f"{host}:{port}")
    connection.endheaders()
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/first/", "/first/cells/", "/state/.."]
)
def test_no_address_is_the_path_of_a_file(port: int, path: str) -> None:
    assert ask(port, path).status == 404


def test_only_this_machine_is_answered_and_only_get(port: int) -> None:
    assert ask(port, "/state").status == 200
    assert ask(port, "/state", host="127.0.0.1").status == 200
    assert ask(port, "/state", host="evil.example").status == 403
    assert ask(port, "/state", method="POST").status == 501
    headers = ask(port, "/state").headers
    assert (headers["Cache-Control"], headers["X-Content-Type-Options"]) == ("no-store", "nosniff")


@pytest.mark.parametrize("leave", [b"GET /state HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01 no request\r\n\r\n"])
def test_a_browser_that_leaves_or_talks_nonsense_prints_nothing(
    port: int, leave: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing is a reset
            connection.sendall(leave)
    assert ask(port, "/state").status == 200
    assert capfd.readouterr().err == ""
