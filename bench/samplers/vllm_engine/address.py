"""The address of a server and the secrets that go with it, which never appear in a message or a file."""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from vcpo_bench.errors import UsageError

KEY_VARIABLE = "VCPO_BENCH_VLLM_API_KEY"
"""Environment variable with the API key of the server, where it asks for one."""
_EXAMPLE = "give an address such as http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is.

    Attributes:
        url: Scheme, host, port and path; no user, no password. For messages too.
        secure: Whether it speaks HTTPS.
        host: Name or number of the machine.
        port: TCP port; None: the usual one of the scheme.
        path: What comes before the path of every request.
        authorization: Value of the header of that name; empty: none.
    """

    url: str
    secure: bool
    host: str
    port: int | None
    path: str
    authorization: str = field(default="", repr=False)

    def hide(self, text: str) -> str:
        """A text of the server without the secret, which it may have repeated."""
        secret = self.authorization.partition(" ")[2]
        return text.replace(secret, "***") if secret else text


def read_address(url: str) -> Address:
    """The address in a URL; user and password in it, or the API key of the environment, become its authorization.

    Raises:
        UsageError: It is no address of a server, or the key cannot be sent; secrets are not in the text.
    """
    shown = without_secrets(url)
    if not re.fullmatch(r"[\x21-\x7e]+", url):
        raise UsageError(f"--url {shown!r}: has blanks or characters that an address cannot have; {_EXAMPLE}")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise UsageError(f"--url {shown}: no address of a server; {_EXAMPLE}") from None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise UsageError(f"--url {shown}: no address of a server; {_EXAMPLE}")
    return Address(
        shown.rstrip("/"),
        parts.scheme == "https",
        host,
        port,
        parts.path.rstrip("/"),
        _authorization(parts.netloc),
    )


def without_secrets(url: str) -> str:
    """A URL without the user and the password it may hold, whatever else is wrong with it."""
    head, slashes, rest = url.rpartition("://") if "://" in url else ("", "", url)
    host, slash, path = rest.partition("/")
    if "@" in path:  # a password with a slash in it, which no address may have
        host, slash, path = rest.rpartition("@")[2], "", ""
    return f"{head}{slashes}{host.rpartition('@')[2]}{slash}{path}"


def _authorization(netloc: str) -> str:
    named, key = netloc.rpartition("@")[0], os.environ.get(KEY_VARIABLE, "")
    if named and key:
        raise UsageError(f"--url: has a user, and {KEY_VARIABLE} is set; use one of them")
    if named:
        user, _, password = named.partition(":")
        pair = f"{unquote(user)}:{unquote(password)}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"
    if key and not re.fullmatch(r"[\x21-\x7e]+", key):
        raise UsageError(f"{KEY_VARIABLE}: must be one word of printable characters")
    return f"Bearer {key}" if key else ""
