"""A sampler of one's own: one plug-in file that opens its own engine, and part of the cell it samples."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.running.cell.run_cell import run_cell
from vcpo_bench.bench.samplers.catalog import SAMPLERS
from vcpo_bench.naming.plugins import load_plugin
from vcpo_bench.records.settings import CellSettings

COUNTING = '''
from dataclasses import dataclass
from vcpo_bench.bench.samplers.engines.base import PolicyEngine
from vcpo_bench.bench.samplers.catalog import Sampler
from vcpo_bench.naming.parameters import integer

OPENED = []

class Engine(PolicyEngine):
    """The policy, counting."""

    drawn = 0
    pushed = ()

    def generate(self, prompts, uniforms, eos):
        self.drawn += len(uniforms)
        return super().generate(prompts, uniforms, eos)

    def set_weights(self, weights, version):
        self.pushed += (version,)
        super().set_weights(weights, version)

@dataclass(frozen=True, kw_only=True)
class Counting(Sampler):
    """Counts responses."""

    name = "counting"
    summary = "a copy of the policy that counts"
    exact = False
    most: int = integer(10, minimum=1)

    def open(self, policy, job):
        OPENED.append((job, Engine(policy, copied=True)))
        return OPENED[-1][1]
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "counting.py"
    file.write_text(COUNTING)
    load_plugin(file)
    yield file
    SAMPLERS.forget()


def test_a_plugin_sampler_draws_the_responses_of_its_cell(tmp_path: Path, plugin: Path) -> None:
    settings = CellSettings(steps=4, prompts=2, responses=4, sampler="counting(5)")
    (cell,) = plan_grid(GridSpec(("clip",), (2,), (0,), settings=settings, controls=False))
    assert cell.config.plugins == SAMPLERS.get("counting").source != ""
    assert run_cell(cell, tmp_path, 0, lambda *_: None) == "completed"
    facts = json.loads((tmp_path / cell.key / "cell.json").read_text())
    assert facts["config"]["sampler"] == "counting(most=5)"
    ((job, engine),) = sys.modules[SAMPLERS.get("counting").__module__].OPENED
    assert (job.responses, job.prompt_length, job.max_response) == (8, 5, 12)
    assert engine.drawn == 8 * (4 + 2)  # updates, and the batches that fill the pipeline
    assert engine.pushed == (0, 1, 2, 3)  # before each update
