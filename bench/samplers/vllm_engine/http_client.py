"""A client of a vLLM server over HTTP, and its errors."""

from __future__ import annotations

import http.client
import json
import time
import uuid
from typing import Any
from urllib.parse import urlencode

from vcpo_bench.bench.samplers.vllm_engine.address import read_address
from vcpo_bench.bench.samplers.vllm_engine.bounded_http import TooLong, exchange
from vcpo_bench.bench.samplers.vllm_engine.messages import Answer, BrokenAnswer, Request, stamps
from vcpo_bench.bench.samplers.vllm_engine.releases import parse, sampling_settings

ANSWER_SECONDS = 600.0
"""Time limit of one response, its last byte included, after which it is requested again."""
ANSWER_BYTES = 2**24
"""Most bytes of an answer that is no response of the model."""
TOKEN_BYTES = 2**12
"""Most bytes of a response for each of its tokens, beside 64 KiB."""
POLL_SECONDS = 0.2


class Unreachable(RuntimeError):  # noqa: N818 - a state of the server, handled where it is seen
    """The server does not answer: down, restarting, or hung."""


class Refused(RuntimeError):  # noqa: N818 - as above
    """The server refused the request."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Client:
    """Talks to `vllm serve`. Redirects are refused: the token ids and the key are for this server only.

    Args:
        url: Address, such as `http://127.0.0.1:8000`; it may hold a user and a password.
        seconds: Time limit for one response.

    Raises:
        UsageError: It is no address.
    """

    def __init__(self, url: str, seconds: float = ANSWER_SECONDS) -> None:
        self._address, self.seconds = read_address(url), seconds
        self.url = self._address.url

    def get(self, path: str, seconds: float = 10.0) -> Any:
        """The JSON at a path; None for an empty answer."""
        return self._talk("GET", path, None, seconds, ANSWER_BYTES)

    def post(
        self,
        path: str,
        body: dict[str, Any] | None = None,
        seconds: float = 0.0,
        limit: int = ANSWER_BYTES,
        **query: str,
    ) -> Any:
        """Send JSON, receive JSON of at most `limit` bytes; None for an empty answer."""
        place = f"{path}?{urlencode(query)}" if query else path
        return self._talk("POST", place, json.dumps(body or {}).encode(), seconds or self.seconds, limit)

    def _talk(self, method: str, path: str, body: bytes | None, seconds: float, limit: int) -> Any:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            status, text = exchange(self._address, method, path, body, headers, seconds, limit)
        except TooLong as error:
            raise BrokenAnswer(f"{path}: {error}") from None
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self.url}: {type(error).__name__} {error}".rstrip()) from None
        if 300 <= status < 400:
            raise Refused(status, f"{path}: {status}, a redirect: give the address it leads to with --url")
        if not 200 <= status < 300:
            raise Refused(status, f"{path}: {status} {self._address.hide(text.decode(errors='replace'))[:300]}")
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError):
            shown = self._address.hide(text.decode(errors="replace"))[:60]
            raise BrokenAnswer(f"{path}: not JSON: {shown!r}") from None

    def closed(self, path: str) -> bool:
        """Whether the server forbids a path, as recent releases do unless told otherwise."""
        try:
            self.post(path, {}, 30.0)
        except Refused as error:
            return error.status == 403
        return False

    def release(self) -> tuple[int, int]:
        """Major and minor number of the server's release."""
        return parse(str((self.get("/version") or {}).get("version", "")))

    def wait(self, seconds: float) -> bool:
        """Whether the server is healthy, or becomes so within that time."""
        limit = time.monotonic() + seconds
        while True:
            try:
                self.get("/health", 5.0)
            except (Unreachable, Refused, BrokenAnswer):
                if time.monotonic() > limit:
                    return False
                time.sleep(POLL_SECONDS)
            else:
                return True

    def draw(self, request: Request, salt: str) -> tuple[Answer, bool]:
        """One response, and whether the server aborted it.

        Args:
            request: What to draw.
            salt: Changes with the weights, so that no KV cache of other weights is used.

        Raises:
            Unreachable, Refused: The server gave no answer.
            BrokenAnswer: The answer belongs to another request or is incomplete.
        """
        name = uuid.uuid4().hex
        body = {
            "request_id": name,
            "token_ids": request.prompt,
            "sampling_params": sampling_settings(request.length, request.seed, request.eos),
            "cache_salt": salt,
        }
        found = self.post("/inference/v1/generate", body, limit=2**16 + TOKEN_BYTES * request.length)
        try:
            if not str(found["request_id"]).endswith(name):
                raise BrokenAnswer(f"asked {name}, answered {found['request_id']}")
            choice = found["choices"][0]
            tokens = [int(token) for token in choice["token_ids"] or []]
            content = (choice["logprobs"] or {}).get("content") or []
            logp = [number(entry["logprob"]) for entry in content] if content else [float("nan")] * len(tokens)
            return Answer(tokens, logp, _versions(choice, len(tokens))), choice.get("finish_reason") == "abort"
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise BrokenAnswer(f"an incomplete answer: {error!r}") from error


def number(value: Any) -> float:
    """A log-probability; NaN where there is none, or the number that servers write for minus infinity."""
    return float(value) if value is not None and value > -9999.0 else float("nan")


def _versions(choice: dict[str, Any], count: int) -> list[int] | None:
    spans = choice.get("weight_versions")
    if spans is None or not all(str(span["version"]).isdigit() for span in spans):
        return None
    return stamps(((int(span["version"]), span["start"], span["end"]) for span in spans), count)
