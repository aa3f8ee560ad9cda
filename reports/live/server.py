"""A small web server for this machine only: it answers GET for the live pages, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[str], tuple[str, str] | None]
HOST = "127.0.0.1"


def make_server(answer: Answer, port: int = 0) -> ThreadingHTTPServer:
    """A server that is not running yet; only programs of this machine reach it.

    Args:
        answer: Kind and text of the page at an address; None: there is none.
        port: To listen at; 0: any that is free.

    Raises:
        OSError: The port is taken.
    """
    return _Server((HOST, port), type("Handler", (_Handler,), {"answer_to": staticmethod(answer)}))


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that left is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    answer_to: Answer

    def do_GET(self) -> None:
        """Answer a page or a state."""
        # A page of another site that had its name point to this machine would send that name.
        port = self.connection.getsockname()[1]
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            self._send(403, "text/plain", "this server answers this machine only")
            return
        found = type(self).answer_to(self.path)
        self._send(200, *found) if found else self._send(404, "text/plain", "no such page")

    def _send(self, status: int, kind: str, text: str) -> None:
        content = text.encode("utf-8", "replace")
        self.send_response(status)
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(content))}
        headers |= {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
        for name, value in (
            headers | {"X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin"}
        ).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is printed of requests, and nothing of those that are none."""
