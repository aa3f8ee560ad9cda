"""The connection to a Tinker server: calls that end in time, and one line for whatever goes wrong."""

from __future__ import annotations

import http.client
import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

from vcpo_bench.bench.samplers.vllm_engine.address import Address, read_address
from vcpo_bench.bench.samplers.vllm_engine.bounded_http import TooLong, exchange
from vcpo_bench.errors import UsageError, how_to_install

URL_VARIABLE = "VCPO_BENCH_TINKER_URL"
"""Environment variable with the URL of the server (`--url`). It is no part of a cell: no number depends on it."""
KEY_VARIABLE = "TINKER_API_KEY"
"""Environment variable with the key of the server, as the client names it; without one a placeholder is sent."""
_NO_KEY = "tml-none"
PATIENCE_SECONDS = 60.0
"""A server that does not answer for longer counts as dead."""
POLL_SECONDS = 5.0
"""Seconds of waiting for an answer after which the server is asked whether it is still there."""

Answer = TypeVar("Answer")


def server_address(url: str) -> Address:
    """Where a server is that the client can talk to; nothing is asked of it yet.

    Raises:
        UsageError: The client is not installed, no address is given, or it is none.
    """
    if find_spec("tinker") is None:
        raise UsageError(
            f"--learner tinker: the package tinker is not installed; {how_to_install('tinker')} (docs/scale.md)"
        )
    if not url:
        raise UsageError(f"--learner tinker: give the server's address with --url, or in {URL_VARIABLE}")
    return read_address(url, KEY_VARIABLE)


class RequestRefusedError(RuntimeError):
    """The server is there, and refused a request."""


class Service:
    """A Tinker server, reached through its own client.

    Args:
        url: Address of the server; it may hold a user and a password, which are sent and appear nowhere.
        patience: Seconds a server may be away before it counts as dead; None: `PATIENCE_SECONDS`.

    Raises:
        UsageError: See `server_address`.

    Attributes:
        url: The address without secrets.
        types: The data types of the client.
    """

    def __init__(self, url: str, patience: float | None = None) -> None:
        self._address = server_address(url)
        self.url, self._patience = self._address.url, PATIENCE_SECONDS if patience is None else patience
        logging.getLogger("tinker").setLevel(logging.CRITICAL)  # it reports each retry; what matters is raised
        tinker: Any = import_module("tinker")
        self.types: Any = tinker.types
        headers = {"Authorization": self._address.authorization} if self._address.authorization[:6] == "Basic " else {}
        key = os.environ.get(KEY_VARIABLE) or _NO_KEY
        self._make: Callable[[], Any] = lambda: tinker.ServiceClient(
            base_url=self.url, api_key=key, default_headers=headers
        )
        self._client: Any = None

    @property
    def client(self) -> Any:
        """Its `ServiceClient`; the first use opens a session.

        Raises:
            UsageError: No server answers.
        """
        if self._client is None:
            if not self._answers():
                raise UsageError(f"--url {self.url}: no Tinker server answers; start one (see docs/scale.md)")
            self._client = self.call("open a session", self._make)
        return self._client

    def models(self) -> list[str]:
        """Names of the base models that it can train."""
        client = self.client
        told = self.call("get_server_capabilities", lambda: ready(client.get_server_capabilities()))
        return [str(one.model_name) for one in told.supported_models]

    def call(self, what: str, verb: Callable[[], Answer]) -> Answer:
        """What a blocking call of the client returns, however long it takes while the server is alive.

        Args:
            what: What is asked for, for messages: `sample`, `optim_step`.
            verb: The call. It goes on in a thread of its own if the server is given up.

        Raises:
            RuntimeError: The server was away for longer than the patience (`tinker_server_away`).
            RequestRefusedError: It refused (`tinker_request_failed`).
        """
        box: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        threading.Thread(target=_carry_out, args=(verb, box), daemon=True).start()
        alive = time.monotonic()
        while True:
            try:
                done, found = box.get(timeout=min(POLL_SECONDS, self._patience))
            except queue.Empty:
                if self._answers():
                    alive = time.monotonic()
                elif time.monotonic() - alive > self._patience:
                    raise RuntimeError(self._away(what, f"has not answered for {self._patience:g} s")) from None
                continue
            if done:
                return found  # type: ignore[no-any-return]
            raise self._failed(what, found) from None

    def unload(self, model: str) -> None:
        """Free the place of a model on the server, which keeps what was saved of it. A server that is gone has none."""
        body = json.dumps({"model_id": model, "type": "unload_model"}).encode()
        self._request("POST", "/api/v1/unload_model", body)

    def _answers(self) -> bool:
        return self._request("GET", "/api/v1/healthz", None) == 200

    def _request(self, method: str, path: str, body: bytes | None) -> int:
        """Status of the answer to a small request; 0: there is none."""
        kind = {"Content-Type": "application/json"} if body else {}
        try:
            return exchange(self._address, method, path, body, kind, 5.0, 2**20)[0]
        except (OSError, http.client.HTTPException, TooLong):
            return 0

    def _away(self, what: str, how: str) -> str:
        return (
            f"tinker_server_away: {self.url} {how}, at {what}; what was recorded is kept, and the same command resumes "
            "from the last state that was saved"
        )

    def _failed(self, what: str, problem: BaseException) -> RuntimeError:
        if not self._answers():
            return RuntimeError(self._away(what, "does not answer"))
        text = self._address.hide(" ".join(str(problem).split()))[:300]
        return RequestRefusedError(f"tinker_request_failed: {self.url}, {what}: {type(problem).__name__} {text}")


def _carry_out(verb: Callable[[], Any], box: queue.SimpleQueue[tuple[bool, Any]]) -> None:
    try:
        box.put((True, verb()))
    except BaseException as problem:  # handed to the thread that waits for it
        box.put((False, problem))


def ready(found: Any) -> Any:
    """A client's answer: newer releases return a future where older ones return the thing itself."""
    return found.result() if hasattr(found, "result") else found
