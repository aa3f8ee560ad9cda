"""One HTTP exchange that ends in time and in bounded memory, whatever the server does."""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Mapping
from typing import Any

from vcpo_bench.bench.samplers.vllm_engine.address import Address

_PIECE = 2**16


class TooLong(Exception):  # noqa: N818 - reads as what happened
    """The answer has more bytes than allowed."""


def exchange(
    address: Address, method: str, path: str, body: bytes | None, headers: Mapping[str, str], seconds: float, limit: int
) -> tuple[int, bytes]:
    """Send one request on a connection of its own and return status and body of the answer. Redirects are not followed.

    Args:
        address: The server.
        method: `GET` or `POST`.
        path: Path and query, after that of the address.
        body: What is sent; None for nothing.
        headers: Further headers.
        seconds: Time limit for all of it: connecting, sending, and every byte of the answer.
        limit: Most bytes of the body.

    Raises:
        TimeoutError: It took longer.
        TooLong: The body is longer.
        OSError: The connection failed.
        http.client.HTTPException: The answer is not HTTP.
    """
    deadline = _Deadline(seconds)
    secret = {"Authorization": address.authorization} if address.authorization else {}
    kind = http.client.HTTPSConnection if address.secure else http.client.HTTPConnection
    connection: Any = kind(address.host, address.port, timeout=deadline.left())
    connection.connect()
    with connection.sock as plain:
        connection.sock = _TimedSocket(plain, deadline)
        connection.request(method, address.path + path, body, {**headers, **secret, "Connection": "close"})
        answer = connection.getresponse()
        return answer.status, _body(answer, limit)


def _body(answer: http.client.HTTPResponse, limit: int) -> bytes:
    found = bytearray()
    while piece := answer.read(_PIECE):
        found += piece
        if len(found) > limit:
            raise TooLong(f"an answer of more than {limit} bytes")
    return bytes(found)


class _Deadline:
    """A point in time."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._at = seconds, time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until then.

        Raises:
            TimeoutError: It has passed.
        """
        left = self._at - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no complete answer within {self._seconds:g} s")
        return left


class _TimedSocket:
    """A socket all of whose operations together end by a deadline: a timeout of its own would begin anew each time."""

    def __init__(self, plain: socket.socket, deadline: _Deadline) -> None:
        self._plain, self._deadline = plain, deadline

    def sendall(self, data: Any) -> None:
        self._plain.settimeout(self._deadline.left())
        self._plain.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._plain, self._deadline))

    def close(self) -> None:
        """Nothing yet: a connection that is not kept alive is closed before its answer is read."""


class _TimedReader(io.RawIOBase):
    def __init__(self, plain: socket.socket, deadline: _Deadline) -> None:
        self._plain, self._deadline = plain, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._plain.settimeout(self._deadline.left())
        return self._plain.recv_into(buffer)
