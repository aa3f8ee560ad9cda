"""Every verb on damaged results folders: an answer, a marked row, or one line; never a traceback.

The short form runs each cheap verb on some damaged copies, `HARDENING=long` all verbs on thousands.
"""

import os
import random
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import call
from damage import damage

from vcpo_bench import records

LONG = os.environ.get("HARDENING") == "long"
ROUNDS = 250 if LONG else 4
READING: tuple[tuple[str, ...], ...] = (
    *(("show", "DIR"), ("show", "DIR", "--json")),
    *(
        ("lab", "analyze", "collapse", "DIR"),
        ("lab", "analyze", "weights", "DIR"),
        ("lab", "analyze", "gradients", "DIR"),
    ),
    *(
        ("lab", "analyze", "compare", "DIR"),
        ("results", "export", "DIR", "--out", "OUT"),
        ("results", "diff", "DIR", "WHOLE"),
    ),
    *(("diagnose", "CELL"), ("results", "trace", "final_reward-00000000", "DIR")),
)
SLOW = (
    *(
        ("run", "--methods", "clip", "--out", "DIR", "--dry-run"),
        ("lab", "eval", "CELL"),
        ("lab", "probe", "CELL", "--at", "1"),
    ),
    *(("report", "DIR", "--html", "OUT.html"), ("report", "DIR", "--html", "OUT.html", "--pdf", "OUT.pdf")),
    *(("lab", "analyze", "prediction", "DIR"), ("results", "export", "DIR", "--as", "latex", "--out", "OUT")),
)
VERBS = (*READING, *SLOW) if LONG else READING


@pytest.fixture(scope="module")
def whole(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "results"
    return make_results(folder, methods=("vcpo", "tis"), lags=(4,), seeds=(0, 1), steps=20, record="diagnostics")


@pytest.mark.parametrize("number", range(len(VERBS)), ids=[" ".join(verb[:3]) for verb in VERBS])
def test_no_damage_is_a_traceback(whole: Path, tmp_path: Path, number: int) -> None:
    failures = []
    for seed in range(ROUNDS):
        chance = random.Random(f"{number}/{seed}")
        folder = tmp_path / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        done = [damage(folder, chance) for _ in range(chance.choice([1, 1, 1, 3]))]
        cells = sorted((folder / records.CELLS).iterdir())
        names = {"DIR": folder, "WHOLE": whole, "OUT": tmp_path / "out", "CELL": chance.choice(cells)}
        names |= {f"OUT.{ending}": tmp_path / f"out.{ending}" for ending in ("html", "pdf")}
        result = call(*(str(names.get(one, one)) for one in VERBS[number]))
        expected = result.exception is None or isinstance(result.exception, SystemExit)
        if not expected or result.exit_code not in (0, 1, 2) or "Traceback" in result.output:
            place = traceback.extract_tb(result.exc_info[2])[-1] if result.exc_info else None
            failures.append(f"seed {seed}: {'; '.join(done)}: {result.exception!r:.300} at {place}")
    assert not failures, "\n".join(failures)
