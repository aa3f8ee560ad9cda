"""Cells killed at random instants, with a checkpoint at every update: every regime, methods that carry state.

Nothing may be lost and no bit may change. `FAULTS` is the number of kills; the nightly run asks for 500.
"""

import os
from pathlib import Path
from random import Random

import pytest
from faulty_cells import KEEP_EVERY, FaultyCell

from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.naming.grammar import first_name
from vcpo_bench.records.settings import CellSettings

FAULTS = int(os.environ.get("FAULTS", "40"))
STEPS = 16
LONGEST_SECONDS = 0.2
CASES = [
    ("vcpo", "fifo", "full"),
    ("clip+ess(base=measured)", "random(unit=trajectory)", "basic"),
    ("reinforce+gac", "async(clock=virtual,straggler=0.3)", "full"),
    ("stapo", "inflight", "basic"),
    ("vcpo", "inflight(cache=recompute)", "diagnostics"),
    ("clip(anchor=proximal)", "minibatch", "basic"),
    ("gspo", "replay", "full"),
    ("kl-adaptive", "fresh-replay", "basic"),
    ("dc-asgd", "oldest-first", "basic"),
    ("vespo", "fifo(publish_every=2,engine_noise=bf16)", "basic"),
]
CASES += [("vcpo", name, "basic") for name in REGIMES.names() if name not in {first_name(one) for _, one, _ in CASES}]


def planned(method: str, regime: str, record: str) -> PlannedCell:
    settings = CellSettings(steps=STEPS, prompts=2, responses=4, eval_every=3, record=record)
    spec = GridSpec([method], [2], [0], ["walk-eos"], regimes=[regime], settings=settings, controls=False)
    (cell,) = plan_grid(spec)
    return cell


@pytest.mark.slow
@pytest.mark.parametrize(("method", "regime", "record"), CASES)
def test_a_killed_cell_ends_with_the_same_bits(tmp_path: Path, method: str, regime: str, record: str) -> None:
    cell = planned(method, regime, record)
    plain = FaultyCell(cell, tmp_path / "plain")
    assert plain.run()
    expected = plain.bits()
    assert len([name for name in expected if name.startswith("checkpoints")]) >= STEPS // KEEP_EVERY
    chance = Random(f"{FAULTS} {regime}")
    wanted = -(-FAULTS // len(CASES))
    kills = mid_run = 0
    while kills < wanted:
        faulty = FaultyCell(cell, tmp_path / f"killed-{kills}")
        faulty.run_to_its_end(chance, LONGEST_SECONDS, wanted - kills)
        assert faulty.bits() == expected
        kills, mid_run = kills + faulty.kills, mid_run + faulty.resumed_half_way()
    assert mid_run >= kills / 2, f"only {mid_run} resumes after {kills} kills began half-way"


@pytest.mark.slow
def test_real_asynchrony_loses_no_update(tmp_path: Path) -> None:
    """Its numbers depend on time, so only their completeness is checked; every start imports torch in the sampler."""
    import pyarrow.parquet as pq

    cell = planned("vcpo", "async", "basic")
    faulty = FaultyCell(cell, tmp_path)
    faulty.run_to_its_end(Random(FAULTS), 20.0, max(3, FAULTS // 50))
    steps = pq.read_table(faulty.ended / "steps.parquet", columns=["step", "lag_max"]).to_pydict()
    assert steps["step"] == list(range(STEPS))
    assert max(steps["lag_max"]) <= 2
