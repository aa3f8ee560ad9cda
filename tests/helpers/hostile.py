"""Results of a stranger: valid folders whose names, reasons and episodes try to drive whatever shows them."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vcpo_bench import records

TERMINAL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.\u2028\r"
MARKUP = "[bold red]loud[/bold red] [/nothing] :smile:"
HTML = "</title></script></style>--><script>alert(1)</script><img src=x onerror=alert(1)>\"' {{7*7}} {% raw %}"
TEX = r"\input{/etc/passwd} \end{tabular} $\frac{$ % ~ ^^5c \write18{id}"
TYPST = '#read("/etc/passwd") #eval("1+1") ] $ ` @label <label> \\ "'
FORMULA = '=HYPERLINK("http://evil.example","x")'
NAME = f"{FORMULA} {MARKUP} {HTML} {TEX} {TYPST} "
"""Printable and short enough to be taken for a name."""
TEXT = f"{NAME} {TERMINAL}"
LONG = "m" * 20_000
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that would drive a terminal."""


def hostile_results(folder: Path, make: Callable[..., Path], name: str, text: str) -> Path:
    """A results folder of two methods and a failed run.

    `name` stands before every name (method, task, regime); `text` is every free text (reason, error, provenance).
    """
    make(folder, methods=("vcpo", "clip"), lags=(1, 16), seeds=(0, 1), steps=40, shapes=_shape, record="diagnostics")
    for file in folder.glob(f"{records.CELLS}/*/{records.CELL_FILE}"):
        cell = json.loads(file.read_text())
        config = cell["config"]
        cell["config"] = config | {field: f"{name}{config[field]}" for field in ("method", "task", "regime")}
        cell |= {"reason": text, "error": text, "provenance": {text: text}}
        file.write_text(json.dumps(cell))
        episodes = file.with_name(records.EPISODES_FILE)
        table = pq.read_table(episodes)
        texts = pa.array([text] * table.num_rows, pa.string())
        pq.write_table(table.set_column(table.column_names.index("text"), "text", texts), episodes)
    return folder


def _shape(method: str, lag: int, seed: int) -> str:
    return "error" if (method, lag, seed) == ("clip", 16, 1) else "collapsed" if lag == 16 else "healthy"


def active(page: Path) -> list[str]:
    """What a browser would run or load: scripts but the page's own, handlers, images, frames."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag in ("img", "iframe", "object", "embed", "link", "base", "form"):
                found.append(tag)
            if tag == "script" and dict(attrs).get("type") != "application/json":
                found.append("script")
            found.extend(name for name, _ in attrs if name.startswith("on"))

    Reader().feed(page.read_text())
    if "script" in found:  # the page's own
        found.remove("script")
    return found
