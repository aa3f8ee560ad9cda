"""The protocol and the provenance are written in words, wherever they are shown."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.reports.document import Table
from vcpo_bench.reports.formatting import in_words
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections.protocol import blocks
from vcpo_bench.reports.study import Study

PROVENANCE = {
    "commit": None,
    "uncommitted": True,
    "libraries": {"torch": "2.12.0", "numpy": "2.4.6"},
    "cores": 2,
    "memory": 79.30000000000001,
    "gpus": ["one", "two"],
}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"torch": "2.12.0", "numpy": "2.4.6"}, "numpy 2.4.6, torch 2.12.0"),
        (["one", 2, None], "one, 2, not recorded"),
        (True, "yes"),
        (np.bool_(False), "no"),
        (0.1 + 0.2, "0.3"),
        (np.float64(3.0), "3"),
        (0.000123456789, "0.000123456789"),
        ("a {b}", "a {b}"),
    ],
)
def test_values_in_words(value: object, words: str) -> None:
    assert in_words(value) == words


def test_no_row_of_the_protocol_is_json(make_results: Callable[..., Path], tmp_path: Path) -> None:
    root = make_results(tmp_path / "p", methods=("vcpo",), lags=(1,), seeds=(0, 1), steps=60, controls=False)
    cells = sorted((root / "cells").glob("*/cell.json"))
    for path, cores in zip(cells, (2, 64), strict=True):
        facts = json.loads(path.read_text())
        facts["provenance"] = PROVENANCE | {"cores": cores}
        facts["config"]["chat"] = True
        path.write_text(json.dumps(facts))
    protocol, provenance = blocks(Study(load(root)), Ledger())
    assert isinstance(protocol, Table)
    assert isinstance(provenance, Table)
    assert dict(shown(protocol))["chat"] == "yes"
    assert shown(provenance)[:-1] == [
        ("commit", "not recorded"),
        ("cores", "2 (1 cell); 64 (1 cell)"),
        ("gpus", "one, two"),
        ("libraries", "numpy 2.4.6, torch 2.12.0"),
        ("memory", "79.3"),
        ("uncommitted", "yes"),
    ]


def shown(table: Table) -> list[tuple[str, str]]:
    return [(name.text, value.text) for name, value in table.rows]
