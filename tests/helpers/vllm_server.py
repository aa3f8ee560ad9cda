"""A server that speaks as much of vLLM's HTTP as a sampler uses, for faults a real one does not produce on demand."""

import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlparse

EOS = 1


class FakeServer(ThreadingHTTPServer):
    """Answers token ids that its request's seed decides.

    Attributes:
        faults: What goes wrong with the next answers: hang, other, half, mute, short, abort.
        calls: Paths and bodies, in order.
        version: Of its weights, as told.
    """

    daemon_threads = True

    def __init__(self, release: str = "0.32.0", port: int = 0, **settings: Any) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.release, self.faults, self.calls = release, deque[str](), list[tuple[str, dict[str, Any]]]()
        self.version: str | None = "default"
        self.settings = {"logprobs_mode": "processed_logprobs", "generation_config": "vllm"} | settings
        self.paused = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def asked(self, path: str) -> list[dict[str, Any]]:
        return [body for known, body in self.calls if known == path and body]

    def draw(self, body: dict[str, Any], fault: str) -> dict[str, Any]:
        settings = body["sampling_params"]
        tokens = [2 + (settings["seed"] + place) % 7 for place in range(settings["max_tokens"])]
        if fault == "short" or fault == "abort":
            tokens = tokens[:2]
        content = None if fault == "mute" else [{"token_id": token, "logprob": -token / 10} for token in tokens]
        choice = {"index": 0, "token_ids": tokens, "logprobs": {"content": content}, "finish_reason": "length"}
        if fault == "abort":
            choice["finish_reason"] = "abort"
        if self.release >= "0.32":
            choice["weight_versions"] = [{"version": self.version, "start": 0, "end": len(tokens)}]
        name = "another" if fault == "other" else body["request_id"]
        return {"request_id": f"generate-tokens-{name}", "choices": [choice]}


class _Handler(BaseHTTPRequestHandler):
    server: FakeServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = urlparse(self.path).path
        model = {"model_config": self.server.settings, "device_config": {"device": "cpu"}}
        answers = {
            "/version": {"version": self.server.release},
            "/server_info": {"vllm_config": model},
            "/health": None,
        }
        self._answer(answers[path])

    def do_POST(self) -> None:
        path = urlparse(self.path).path
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        self.server.calls.append((self.path if "?" in self.path else path, body))
        if path == "/update_weight_version":
            self.server.version = body["new_version"]
        if path != "/inference/v1/generate":
            self._answer({})
            return
        if not body or self.server.settings.get("forbids"):
            self._answer({"error": {}}, status=403 if self.server.settings.get("forbids") else 400)
            return
        fault = self.server.faults.popleft() if self.server.faults else ""
        if fault == "hang":
            time.sleep(1.0)
        self._answer(self.server.draw(body, fault), half=fault == "half")

    def _answer(self, value: Any, half: bool = False, status: int = 200) -> None:
        text = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(text[: len(text) // 2] if half else text)


@contextmanager
def serving(release: str = "0.32.0", port: int = 0, **settings: Any) -> Iterator[FakeServer]:
    server = FakeServer(release, port, **settings)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
