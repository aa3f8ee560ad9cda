"""A plug-in that a setting names is part of the cell, so that an edited file makes another one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from plugin_state import forget_plugins

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.plugin_files import plugins_of
from vcpo_bench.naming.plugins import load_plugin

OWN = '''
from dataclasses import dataclass

from vcpo_bench.bench.policies.embedded.tiny import Tiny

@dataclass(frozen=True, kw_only=True)
class Own(Tiny):
    """One's own."""

    name = "own"
    summary = "one's own"
'''


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    forget_plugins()


def test_a_plug_in_is_part_of_the_cell_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    load_plugin(file)
    cell = CellConfig(method="clip", staleness=1, seed=0)
    assert plugins_of(cell) == ""
    assert len(plugins_of(replace(cell, policy="own"))) == 10, "ten digits of its digest"
