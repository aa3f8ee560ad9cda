"""The file that a measurement leaves: `stageN-NAME.json`, with status, result, hardware, versions and date.

What comes home is one file of them all.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stages
from stages import Step

if TYPE_CHECKING:
    from launch import Place

BEGUN, DONE = "begun", ("ok", "skipped")


def path_of(folder: Path, stage: int, name: str) -> Path:
    """The file of a measurement."""
    return folder / f"stage{stage}-{name}.json"


def read(path: Path) -> dict[str, Any]:
    """What is recorded; empty where nothing is."""
    return dict(json.loads(path.read_text())) if path.is_file() else {}


def write(path: Path, facts: dict[str, Any]) -> None:
    """Replace the file as a whole: the process may be killed at any instant."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(facts, indent=1, allow_nan=True))
    draft.replace(path)


def in_turn(steps: list[Step], stage: int, place: Place) -> list[Step]:
    """What is not done, in order; what has failed before comes last."""
    found = [(step, read(path_of(place.folder, stage, step.name)).get("status")) for step in steps]
    left = [(step, status) for step, status in found if status not in DONE]
    return [step for step, status in sorted(left, key=lambda each: each[1] == "failed")]


def gathered(place: Place) -> str:
    """Name of the file of all measurements of a place."""
    return f"gpu-day-{place.name}.json"


def gather(place: Place, out: Path) -> None:
    """Write the file of all measurements: the records that are there, as the stages have them."""
    every = (path_of(place.folder, stage, step.name) for stage, steps in stages.STAGES.items() for step in steps)
    write(out / gathered(place), {"measurements": [read(path) for path in every if path.is_file()]})


def measurements(out: Path) -> list[dict[str, Any]]:
    """Every measurement in a folder of results."""
    return [facts for path in sorted(out.glob("gpu-day-*.json")) for facts in read(path)["measurements"]]
