"""A server that means harm, or is broken in ways that cost time, memory or secrets."""

import base64
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

import pytest
from vllm_server import serving

from vcpo_bench.bench.samplers.catalog import SAMPLERS
from vcpo_bench.bench.samplers.vllm_engine import http_client, weight_folder
from vcpo_bench.bench.samplers.vllm_engine.address import KEY_VARIABLE, read_address, without_secrets
from vcpo_bench.bench.samplers.vllm_engine.http_client import Client, Refused, Unreachable
from vcpo_bench.bench.samplers.vllm_engine.messages import Answer as Drawn
from vcpo_bench.bench.samplers.vllm_engine.messages import BrokenAnswer, Request, check, stamps
from vcpo_bench.errors import UsageError

OK = b"HTTP/1.1 200 OK\r\n"
Talk = Callable[[socket.socket], None]


def whole_request(connection: socket.socket) -> bytes:
    """A request with its body: closing a connection with something unread resets it, answer and all."""
    with connection.makefile("rb") as lines:
        head = b"".join(takewhile(lambda line: line.strip(), lines))
        length = re.search(rb"^content-length: (\d+)", head, re.MULTILINE | re.IGNORECASE)
        return head + lines.read(int(length.group(1)) if length else 0)


@contextmanager
def speaking(talk: Talk) -> Iterator[tuple[str, list[bytes]]]:
    """A server that reads a request, then says what `talk` says; yields its address and what it was sent."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        heard.append(whole_request(connection))
                        talk(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}", heard
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def drip(first: bytes, piece: bytes) -> Talk:
    """Sends one piece every 50 ms, for ever."""

    def talk(connection: socket.socket) -> None:
        connection.sendall(first)
        for _ in range(200):
            connection.sendall(piece)
            time.sleep(0.05)

    return talk


def flood(first: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        connection.sendall(first)
        while True:
            connection.sendall(b"1" * 2**20)

    return talk


@pytest.mark.parametrize(
    "talk",
    [
        drip(OK + b"Content-Length: 100000\r\n\r\n", b"1"),
        drip(OK, b"X"),
        drip(b"HTTP", b"1"),
        drip(OK, b"X-Header: 1\r\n"),
        drip(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n1\r\n"),
        lambda connection: time.sleep(1),
    ],
    ids=["body", "header", "status", "headers", "chunks", "silence"],
)
def test_a_server_that_drips_is_left_at_the_limit(talk: Talk) -> None:
    with speaking(talk) as (place, _):
        began = time.monotonic()
        with pytest.raises(Unreachable, match=r"within 0.4 s|timed out"):
            Client(f"http://{place}", seconds=0.4).post("/inference/v1/generate")
        assert time.monotonic() - began < 2  # per byte, the limit held a client for ever


@pytest.mark.parametrize("framing", [b"\r\n", b"Content-Length: 10000000000\r\n\r\n"])
def test_a_huge_answer_is_cut_off(framing: bytes) -> None:
    with speaking(flood(OK + framing)) as (place, _), pytest.raises(BrokenAnswer, match="more than 16777216 bytes"):
        Client(f"http://{place}", seconds=20.0).post("/server_info")


def test_a_response_may_be_as_long_as_its_tokens_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "TOKEN_BYTES", 10)
    with speaking(flood(OK + b"\r\n")) as (place, _), pytest.raises(BrokenAnswer, match="more than 65636 bytes"):
        Client(f"http://{place}", seconds=20.0).draw(Request([1], 10, 0, None), "salt")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_refused(status: int) -> None:
    with speaking(lambda c: c.sendall(OK + b"Content-Length: 2\r\n\r\n{}")) as (other, heard):
        answer = f"HTTP/1.1 {status} Moved\r\nLocation: http://{other}/\r\nContent-Length: 0\r\n\r\n".encode()
        with speaking(lambda connection: connection.sendall(answer)) as (place, _):
            with pytest.raises(Refused, match=f"{status}, a redirect"):
                Client(f"http://{place}").get("/health")
    assert not heard


@pytest.mark.parametrize("text", [b"[" * 100000, b"\xff\xfe", b"1" * 5000, b"{"])
def test_what_is_no_json_is_a_broken_answer(text: bytes) -> None:
    with speaking(lambda connection: connection.sendall(OK + b"\r\n" + text)) as (place, _):
        with pytest.raises(BrokenAnswer, match="not JSON"):
            Client(f"http://{place}").get("/version")


@pytest.mark.parametrize("spans", [[(0, 0, 10**12)], [(0, 0, -1), (0, 0, 4)], [(0, 0, 3), (1, 3, 5)], [(0, 0, 3)]])
def test_version_spans_are_bounded_by_the_tokens(spans: list[tuple[int, int, int]]) -> None:
    with pytest.raises(BrokenAnswer):
        stamps(spans, 4)


@pytest.mark.parametrize("token", [-1, 2**31, 10**30])
def test_tokens_that_are_no_ids_are_refused(token: int) -> None:
    with pytest.raises(BrokenAnswer, match="no token ids"):
        check(Request([1], 2, 0, None), Drawn([3, token], [-0.1, -0.1]))


@pytest.mark.parametrize(
    "url",
    [
        "http://host:8000/\r\nX-Evil: 1",
        "http://ho st:8000",
        "http://host:99999",
        "http://host:8000?x=1",
        "http://host#x",
        "ftp://host",
        "host:8000",
        "http://",
        "http://[::1",
        "http://user:secret@",
        "http://user:sec/ret@host:1",
        "ftp://user:secret@host",
        "user:secret@host",
    ],
)
def test_what_is_no_address_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(UsageError, match=r"^--url ") as refusal:
        read_address(url)
    assert "sec" not in str(refusal.value)
    assert "\r" not in str(refusal.value)


def test_user_and_password_are_sent_and_never_shown() -> None:
    with speaking(lambda connection: connection.sendall(b"HTTP/1.1 401 No\r\n\r\n" + SECRET.encode())) as (
        place,
        heard,
    ):
        client = Client(f"http://user:p%40ss@{place}/prefix/")
        with pytest.raises(Refused) as refusal:
            client.get("/version")
    assert f"Authorization: Basic {SECRET}".encode() in heard[0]
    assert heard[0].startswith(b"GET /prefix/version HTTP/1.1\r\n")
    shown = f"{refusal.value} {client.url} {client._address!r}"
    assert SECRET not in shown
    assert "p%40ss" not in shown
    assert "user" not in shown


SECRET = base64.b64encode(b"user:p@ss").decode()


def test_an_api_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sk-very-secret")
    with speaking(lambda connection: connection.sendall(OK + b"\r\nsk-very-secret")) as (place, heard):
        client = Client(f"http://{place}")
        with pytest.raises(BrokenAnswer) as broken:
            client.post("/pause", mode="wait")
    assert b"Authorization: Bearer sk-very-secret" in heard[0]
    assert "sk-very" not in f"{broken.value} {client._address!r}"


@pytest.mark.parametrize("key", ["two words", "line\r\nX-Evil: 1", "clé"])
def test_a_key_that_would_inject_headers_is_refused_unseen(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv(KEY_VARIABLE, key)
    with pytest.raises(UsageError, match=f"^{KEY_VARIABLE}: must be one word") as refusal:
        Client("http://host")
    assert key not in str(refusal.value)


def test_a_key_and_a_user_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "key")
    with pytest.raises(UsageError, match="use one of them"):
        Client("http://user:secret@host")


def test_a_server_that_is_away_is_named_without_secrets() -> None:
    with pytest.raises(Unreachable) as away:
        Client("http://user:secret@127.0.0.1:9").get("/version")
    assert "secret" not in str(away.value)
    assert away.value.__cause__ is None
    assert without_secrets("https://user:secret@host:1/path") == "https://host:1/path"
    assert without_secrets("http://host:1/path") == "http://host:1/path"


def test_vllm_and_its_server_are_asked_for_before_the_first_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VCPO_BENCH_VLLM_URL", raising=False)
    with pytest.raises(UsageError, match="give the server's address with --url"):
        SAMPLERS.parse("vllm-server").check_installed()
    with serving() as server:
        monkeypatch.setenv("VCPO_BENCH_VLLM_URL", server.url)
        SAMPLERS.parse("vllm-server").check_installed()
    monkeypatch.setattr("vcpo_bench.bench.samplers.vllm_engine.releases.installed", lambda: None)
    for sampler in ("vllm", "vllm-server(weights=nccl)"):
        with pytest.raises(UsageError, match="vLLM is not installed"):
            SAMPLERS.parse(sampler).check_installed()
    SAMPLERS.parse("torch").check_installed()


KILLED = """
import os, signal
from vcpo_bench.bench.samplers.vllm_engine.weight_folder import WeightFolder
folder = WeightFolder()
(folder.path / "model.safetensors").write_bytes(b"0" * 1000)
print(folder.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_copies_of_weights_of_a_killed_process_are_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(weight_folder.tempfile, "tempdir", None)
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=False)
    left = Path(done.stdout.strip())
    assert (left / "model.safetensors").exists()
    alive = weight_folder.WeightFolder()
    assert not left.exists()
    assert alive.path.stat().st_mode & 0o077 == 0
    second = weight_folder.WeightFolder()
    assert alive.path.is_dir()
    for folder in (alive, second):
        folder.close()
    assert list(tmp_path.iterdir()) == []


def test_the_documented_command_listens_on_this_machine_only() -> None:
    page = (Path(__file__).parents[3] / "docs" / "vllm.md").read_text()
    (command,) = [line for line in page.splitlines() if line.strip().startswith("VLLM_SERVER_DEV_MODE=1 vllm serve")]
    assert "--host 127.0.0.1" in command
