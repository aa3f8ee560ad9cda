"""Optional packages that a run needs, checked before its first cell."""

from __future__ import annotations

from importlib.util import find_spec

from vcpo_bench.errors import UsageError, how_to_install


def check_extras(model: str, lora: int) -> None:
    """Refuse what needs a package that is not installed.

    Raises:
        UsageError: A package is missing; names it and what installs it.
    """
    needed = [("--model", "hf", name) for name in ("transformers", "tokenizers") if model]
    needed += [("--lora", "hf", "peft")] if model and lora else []
    for flag, extra, package in needed:
        if not installed(package):
            raise UsageError(f"{flag}: the package {package} is not installed; {how_to_install(extra)}")


def installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    spec = find_spec(package)
    return spec is not None and spec.origin is not None  # a folder of that name is no package
