"""Carries out one measurement and records it: `python child.py JOB`, a process of its own, see `launch`."""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

import ledger

BEGAN = perf_counter()
HELPERS = Path(__file__).parents[1] / "helpers"


def main(job: dict[str, Any]) -> None:
    """Record how the measurement of a job ends."""
    path = Path(job["path"])
    facts = ledger.read(path)
    with ExitStack() as stack:
        if job["device"].startswith("mock"):
            sys.path.insert(0, str(HELPERS))
            import mock_gpu

            stack.enter_context(mock_gpu.mocked())
        facts |= _ending(job, facts)
    ledger.write(path, facts | {"seconds": round(perf_counter() - BEGAN, 2)})


def _ending(job: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Status, result and error; what is known before the end is recorded as soon as it is."""
    try:
        import kit

        def keep(result: kit.Result) -> None:
            facts["result"] = result
            ledger.write(path, facts)

        path, folder = Path(job["path"]), Path(job["folder"])
        facts |= kit.machine()
        setup = kit.Setup(
            job["device"],
            job["tiny"],
            folder / "work",
            lambda: float(job["seconds"]) - (perf_counter() - BEGAN),
            keep,
        )
        module, _, function = job["entry"].partition(":")
        measure: kit.Measure = getattr(importlib.import_module(module), function)
        return {"status": "ok", "result": measure(setup, **job["arguments"])}
    except Exception as problem:  # whatever a driver or an engine raises is a result
        known = getattr(problem, "result", None) or facts.get("result", {})
        status = getattr(problem, "status", "")
        text = str(problem) if status else f"{type(problem).__name__}: {problem}"
        return {"status": status or "failed", "error": text, "trace": traceback.format_exc(), "result": known}


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
