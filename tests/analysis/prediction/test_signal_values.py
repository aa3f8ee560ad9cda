"""The signals of all runs are those that each says of its own updates, whatever was read how."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, all_signals, column
from vcpo_bench.analysis.prediction.auroc import auroc_table
from vcpo_bench.analysis.prediction.panel import build_panel, panels_by_signal
from vcpo_bench.analysis.prediction.signal_values import signal_values
from vcpo_bench.analysis.results import Results, load


class Foreign(Signal):
    """Of a column that the schema does not know."""

    name: ClassVar[str] = "foreign"
    summary: ClassVar[str] = "a column of somebody's own"
    role: ClassVar[Role] = "policy"
    columns: ClassVar[tuple[str, ...]] = ("temperature",)

    def formula(self, steps: Updates) -> Array:
        """The column itself."""
        return column(steps, "temperature")


def folder_of(make_results: Callable[..., Path], root: Path) -> Path:
    return make_results(root, methods=("vcpo", "clip"), lags=(1, 16), seeds=range(2), steps=80)


def test_every_signal_is_what_its_formula_says_of_the_run_alone(
    tmp_path: Path, make_results: Callable[..., Path]
) -> None:
    results, whole = load(folder_of(make_results, tmp_path)), load(tmp_path)
    keys = [str(key) for key in results.cells["key"]][::-1][:-1]  # another order, and not all
    found = signal_values(results, keys, 90, all_signals())
    tables: dict[str, pd.DataFrame] = dict(iter(whole.steps.groupby("key")))
    for name, signal in all_signals().items():
        wanted = np.full((len(keys), 90), np.nan)
        for row, key in zip(wanted, keys, strict=True):
            row[tables[key]["step"]] = signal.of(tables[key])
        np.testing.assert_array_equal(found[name], wanted, err_msg=name)
    assert np.isfinite(found["ess"]).any()
    np.testing.assert_array_equal(found["head_norm_z"], np.nan)  # recorded by nobody


def test_a_column_outside_the_schema_is_read_too(tmp_path: Path, make_results: Callable[..., Path]) -> None:
    def read(extra: bool) -> Results:
        results = load(tmp_path)
        if extra:
            results.__dict__["steps"] = results.steps.assign(temperature=results.steps["step"] / 8)
        return results

    keys = [str(key) for key in load(folder_of(make_results, tmp_path)).cells["key"]]
    np.testing.assert_array_equal(signal_values(read(False), keys, 80, {"foreign": Foreign()})["foreign"], np.nan)
    wanted = np.tile(np.arange(80) / 8, (len(keys), 1))
    np.testing.assert_array_equal(signal_values(read(True), keys, 80, {"foreign": Foreign()})["foreign"], wanted)


def test_panels_of_one_signal_each_are_the_panel_of_all(tmp_path: Path, make_results: Callable[..., Path]) -> None:
    """What looks at one signal at a time sees the same runs, verdicts and values."""
    results = load(folder_of(make_results, tmp_path))
    whole = build_panel(results)
    seen = []
    for one in panels_by_signal(results):
        ((name, values),) = one.values.items()
        np.testing.assert_array_equal(values, whole.values[name], err_msg=name)
        np.testing.assert_array_equal(one.onset, whole.onset)
        assert one.runs.equals(whole.runs)
        seen.append(name)
    assert seen == list(whole.values)
    pd.testing.assert_frame_equal(auroc_table(panels_by_signal(results)), auroc_table([whole]))


def test_released_columns_are_read_again(tmp_path: Path, make_results: Callable[..., Path]) -> None:
    """`release` frees memory; it loses nothing, and leaves what says which rows are whose."""
    results = load(folder_of(make_results, tmp_path))
    wanted = results.step_columns("share_clipped", "ess_ratio").copy()
    results.release(["share_clipped", "step", "never read"])
    pd.testing.assert_frame_equal(results.step_columns("share_clipped", "ess_ratio"), wanted)
