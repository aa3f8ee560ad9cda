"""Logs of every format with bytes changed at random: a diagnosis or one sentence, never another exception."""

import json
import os
import random
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest
from foreign_runs import planted, rows_of

from vcpo_bench.analysis.diagnosis import diagnose
from vcpo_bench.analysis.logs import read_run
from vcpo_bench.errors import UsageError
from vcpo_bench.reports.terminal.diagnosis import diagnosis_text

MUTANTS = 2_500 if os.environ.get("HARDENING") == "long" else 40
ODD = ("NaN", "1e999", "9" * 400, "-", "null", "[]", "{}", '"', "'", ",", "\n", "\r", "\x1b]", "\x00", "²", "{'a': 1}")
ROWS = 60


def jsonl(path: Path) -> None:
    path.write_text("\n".join(json.dumps(row) for row in rows_of(planted("entropy"), "verl")[:ROWS]))


def trainer_state(path: Path) -> None:
    rows = rows_of(planted("entropy"), "trl")[:ROWS]
    path.write_text(json.dumps({"logging_steps": 5, "log_history": rows}))


def table(path: Path) -> None:
    rows = rows_of(planted("entropy"), "trl")[:ROWS]
    names = sorted({name for row in rows for name in row})
    path.write_text("\n".join([",".join(names), *(",".join(str(row.get(name, "")) for name in names) for row in rows)]))


def console(path: Path) -> None:
    rows = rows_of(planted("entropy"), "verl")[:ROWS]
    metrics = [row.get("data", row) for row in rows]
    lines = [
        f"step:{t} - " + " - ".join(f"{name}:{value}" for name, value in row.items()) for t, row in enumerate(metrics)
    ]
    path.write_text("\n".join([*lines, *(f"step {t}: {{'reward': 0.5, 'loss': {t}}}" for t in range(9))]))


def events(path: Path) -> None:
    def field(number: int, kind: int, data: bytes) -> bytes:
        return bytes([number << 3 | kind]) + (bytes([len(data)]) if kind == 2 else b"") + data

    whole = b""
    for step in range(ROWS):
        value = field(1, 2, b"critic/score/mean") + field(2, 5, struct.pack("<f", 0.5))
        event = field(2, 0, bytes([step])) + field(5, 2, field(1, 2, value))
        whole += struct.pack("<QI", len(event), 0) + event + bytes(4)
    path.write_bytes(whole)


def trackio(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE metrics (run_name, step, metrics)")
        rows = [("a", t, json.dumps(row)) for t, row in enumerate(rows_of(planted("entropy"), "trl")[:ROWS])]
        database.executemany("INSERT INTO metrics VALUES (?, ?, ?)", rows)


def mlflow(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE metrics (run_uuid, key, value, step, is_nan, timestamp)")
        rows = [("a", "critic/score/mean", 0.5, t, 0, t) for t in range(ROWS)]
        database.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)


def token_dump(path: Path) -> None:
    row = {"prev_logprobs": [-1.0, -2.0], "generation_logprobs": [-1.1, -1.9], "token_loss_mask": [1, 1], "reward": 1}
    path.write_text("\n".join(json.dumps(row) for _ in range(ROWS)))


WRITERS = {
    "log.jsonl": jsonl,
    "trainer_state.json": trainer_state,
    "log.csv": table,
    "log.txt": console,
    "events.out.tfevents.1": events,
    "trackio.db": trackio,
    "mlflow.db": mlflow,
    "train_data_step3.jsonl": token_dump,
}


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The data with a few pieces changed, cut out, doubled, moved, or replaced by something odd."""
    for _ in range(rng.choice((1, 2, 5, 30))):
        begin = rng.randrange(len(data) + 1)
        end = min(begin + rng.choice((1, 2, 8, 100)), len(data))
        piece = data[begin:end]
        new = rng.choice(
            (
                bytes(rng.randrange(256) for _ in piece),
                b"",
                piece * 3,
                rng.choice(ODD).encode(),
                data[(other := rng.randrange(len(data) + 1)) : other + 20],
            )
        )
        data = data[:begin] + new + data[end:]
        if not data:
            break
    return data


@pytest.mark.parametrize("name", WRITERS)
def test_a_mutated_log_never_crashes(name: str, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    WRITERS[name](whole)
    data, path = whole.read_bytes(), tmp_path / name
    path.write_bytes(data)
    assert diagnosis_text(diagnose(read_run(path)))
    for seed in range(MUTANTS):
        path.write_bytes(mutated(data, random.Random(seed)))
        said = diagnosis_or_refusal(path)
        assert isinstance(said, str), f"mutant {seed} of {name}: {said!r}"


def diagnosis_or_refusal(path: Path) -> str | Exception:
    """What a user reads; another exception is a crash."""
    try:
        return diagnosis_text(diagnose(read_run(path)))
    except UsageError as error:
        return str(error) if "\n" not in str(error) else error
    except Exception as error:
        return error
