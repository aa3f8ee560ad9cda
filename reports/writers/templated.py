"""Pages from the templates of this room, each in one file with the style and the scripts it needs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup


def rendered(template: str, *scripts: str, helpers: dict[str, Callable[..., Any]] | None = None, **values: Any) -> str:
    """A page: names that are not given are errors, and every text is escaped; only what is made here is trusted.

    Args:
        template: File of the template.
        scripts: Files of the scripts, which the page knows as `script`, with `script_hash` for its policy.
        helpers: Filters and tests of the template.
        values: What the template shows.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= helpers or {}
    environment.tests |= helpers or {}
    script = "".join(map(_resource, scripts))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    values |= {"style": Markup(_resource("page.css")), "script": Markup(script), "script_hash": digest}
    return environment.from_string(_resource(template)).render(values)


def _resource(name: str) -> str:
    return (resources.files("vcpo_bench.reports.writers") / "templates" / name).read_text(encoding="utf-8")
