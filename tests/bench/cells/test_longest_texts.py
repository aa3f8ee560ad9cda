"""What could be trained, but not be read again from `cell.json`, is refused when the grid is planned."""

from pathlib import Path

import pytest

from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.errors import UsageError


def test_what_cell_json_could_not_say_again_is_refused_before_it_is_trained(tmp_path: Path) -> None:
    """A trace of lags is written out in the name of its regime."""
    lags = tmp_path / "lags.txt"
    lags.write_text("\n".join(["1"] * 240))
    regime = f"random(law=trace,trace={lags})"
    with pytest.raises(
        UsageError,
        match=r"--regime random.*\.\.\.: must be a printable text of at most 500 characters",
    ):
        plan_grid(GridSpec(("clip",), (3,), (0,), ("walk",), regimes=(regime,), controls=False))
    lags.write_text("\n".join(["1"] * 200))
    assert plan_grid(GridSpec(("clip",), (3,), (0,), ("walk",), regimes=(regime,), controls=False))
    with pytest.raises(UsageError, match=r"--seeds 9223372036854775808: must be a whole number below 2\^63"):
        plan_grid(GridSpec(("clip",), (3,), (2**63,), ("walk",), controls=False))
