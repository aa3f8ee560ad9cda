"""Grids: products, controls, borrowed step scales, and everything once."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid, skipped_methods
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.opening import longest_response
from vcpo_bench.bench.cells.parts import SharedParts
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.policies.embedded.tiny import Tiny
from vcpo_bench.bench.policies.warm_start import TINY as TINY_POLICY
from vcpo_bench.bench.policies.warm_start import WarmStart, save_warm_start
from vcpo_bench.bench.running.cell.run_cell import run_cell
from vcpo_bench.bench.running.order import waves
from vcpo_bench.bench.running.run_grid import worker_count
from vcpo_bench.bench.samplers.catalog import SAMPLERS
from vcpo_bench.bench.tasks import token_task
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import method_names, parse_method
from vcpo_bench.records.settings import CellSettings

TINY = {"tasks": ("walk-eos",), "settings": CellSettings(steps=4, prompts=2, responses=4)}


def counted(spec: GridSpec) -> Counter[tuple[str, int, bool]]:
    return Counter((c.config.method, c.config.staleness, c.control) for c in plan_grid(spec))


def test_readme_grid_has_its_controls() -> None:
    spec = GridSpec(methods=("vcpo", "clip", "vespo"), staleness=(1, 16, 128), seeds=(0, 1, 2))
    cells = counted(spec)
    asked = {(m, k, False): 3 for m in ("vcpo", "clip", "vespo") for k in (1, 16, 128)}
    assert cells == asked | {("reinforce", k, True): 3 for k in (0, 1, 16, 128)}


def test_controls_asked_for_by_name_are_no_controls_and_each_cell_comes_once() -> None:
    spec = GridSpec(methods=("reinforce", "reinforce"), staleness=(0, 4, 4), seeds=(0,))
    assert counted(spec) == {("reinforce", 0, False): 1, ("reinforce", 4, False): 1}


def test_the_control_at_lag_0_comes_also_where_its_method_was_asked_for_at_other_lags() -> None:
    spec = GridSpec(methods=("reinforce",), staleness=(4,), seeds=(0,))
    assert counted(spec) == {("reinforce", 4, False): 1, ("reinforce", 0, True): 1}


def test_no_controls() -> None:
    spec = GridSpec(methods=("clip",), staleness=(4,), seeds=(0,), controls=False)
    assert counted(spec) == {("clip", 4, False): 1}


def test_all_is_every_method_the_regime_can_serve() -> None:
    spec = GridSpec(methods=("all",), staleness=(16,), seeds=(0,), controls=False)
    names = {cell.config.method for cell in plan_grid(spec)}
    assert names >= {"vcpo", "vespo", "clip", "gspo", "reinforce"}
    missing = [name for name in method_names() if parse_method(name).canonical not in names]
    assert skipped_methods(spec) == missing
    assert "decoupled" in skipped_methods(spec)
    assert skipped_methods(replace(spec, methods=("clip",))) == []


def test_every_list_is_an_axis_and_spellings_of_one_method_are_one() -> None:
    spec = GridSpec(
        methods=("clip", "clip(high=0.2)", "tis"),
        staleness=(1, 2),
        seeds=(0, 5),
        tasks=("chain", "walk"),
        lrs=(1e-4, 3e-4),
        controls=False,
    )
    cells = plan_grid(spec)
    assert len(cells) == 2 * 2 * 2 * 2 * 2
    assert len({cell.key for cell in cells}) == len(cells)


def test_longest_first() -> None:
    cells = plan_grid(GridSpec(methods=("vcpo", "clip"), staleness=(1, 128), seeds=(0,)))
    assert (cells[0].config.method, cells[0].config.staleness) == ("vcpo", 128)
    assert [c.cost for c in cells] == sorted((c.cost for c in cells), reverse=True)


@pytest.mark.parametrize("field", ["methods", "staleness", "seeds", "tasks", "lrs"])
def test_empty_axes_are_refused(field: str) -> None:
    values = {"methods": ("clip",), "staleness": (1,), "seeds": (0,)} | {field: ()}
    with pytest.raises(UsageError, match="empty"):
        plan_grid(GridSpec(**values))


def test_lags_longer_than_the_run_are_warned_of() -> None:
    spec = GridSpec(methods=("clip",), staleness=(5, 299, 300), seeds=(0,))
    assert len(spec.warnings()) == 1


def test_single_responses_are_warned_of() -> None:
    spec = GridSpec(methods=("clip",), staleness=(1,), seeds=(0,), settings=CellSettings(responses=1))
    (line,) = spec.warnings()
    assert line.startswith("--responses 1: ")


def test_cells_are_put_in_order_without_comparing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """4,000 missing cells took 16 s when every wave searched every cell."""
    methods = ("vcpo", "vcpo(ess=off)+lr-matched")
    (donor, borrower) = sorted(
        plan_grid(GridSpec(methods, (2,), (0,), controls=False, **TINY)), key=lambda cell: cell.config.series
    )
    borrowers = [replace(borrower, key=f"borrower-{number}") for number in range(5)]
    last = replace(borrower, key="last", config=replace(borrower.config, series="borrower-3"))
    others = [replace(donor, key=f"other-{number}") for number in range(5)]
    monkeypatch.setattr(PlannedCell, "__eq__", lambda *_: pytest.fail("compared"))
    first, second, third = waves([last, *borrowers, *others, donor])
    assert (first, second, third) == ([*others, donor], borrowers, [last])


def test_a_borrower_brings_its_donor_and_runs_after_it(tmp_path: Path) -> None:
    methods = ("vcpo(ess=off)+lr-matched", "vcpo(ess=off)+lr-shuffled")  # both borrow from vcpo by default
    cells = plan_grid(GridSpec(methods=methods, staleness=(2,), seeds=(0,), controls=False, **TINY))
    assert sorted(c.config.method for c in cells) == sorted(("vcpo", *methods))
    first, second = waves(cells)
    (donor,) = first
    assert (donor.config.method, donor.control) == ("vcpo", True)
    assert {cell.config.series for cell in second} == {donor.key}

    folder = ResultsFolder(tmp_path)
    for cell in (donor, *second):
        assert run_cell(cell, folder.cells, 0, lambda *event: None) == "completed"
    scales = {
        cell.config.method.partition("+")[2].partition("(")[0] or "vcpo": pq.read_table(
            folder.cells / cell.key / "steps.parquet"
        )["step_scale"].to_pylist()
        for cell in (donor, *second)
    }
    assert scales["lr-matched"] == pytest.approx([sum(scales["vcpo"]) / 4] * 4)
    assert sorted(scales["lr-shuffled"]) == pytest.approx(sorted(scales["vcpo"]))
    assert len(set(scales["vcpo"])) > 1


def test_a_borrower_without_its_donor_is_a_row_with_its_error(tmp_path: Path) -> None:
    spec = GridSpec(methods=("clip+lr-matched(to=vcpo)",), staleness=(2,), seeds=(0,), controls=False, **TINY)
    (borrower,) = [cell for cell in plan_grid(spec) if cell.config.series]
    events: list[tuple] = []
    status = run_cell(borrower, ResultsFolder(tmp_path).cells, 0, lambda *event: events.append(event))
    assert status == "error"
    facts = json.loads((tmp_path / "cells" / borrower.key / "cell.json").read_text())
    assert "run it first" in facts["reason"]
    assert events[-1][0] == "ended"


def test_start_policy_from_a_file_moves_the_key_and_is_used(tmp_path: Path) -> None:
    task = token_task("walk-eos")
    other = WarmStart(task.canonical, TINY_POLICY.untrained(task, seed=7), seed=7, steps=0, reward=0.0, greedy=0.0)
    save_warm_start(other, tmp_path / "start.safetensors")
    spec = GridSpec(methods=("clip",), staleness=(0,), seeds=(0,), controls=False, **TINY)
    (shipped,) = plan_grid(spec)
    (given,) = plan_grid(replace(spec, start=tmp_path / "start.safetensors"))
    assert (shipped.config.start, len(given.config.start)) == ("", 10)
    assert shipped.key != given.key
    used = build_trainer(given.config, start=given.start).policy
    assert all(torch.equal(a, b) for a, b in zip(used.parameters(), other.policy.parameters(), strict=True))
    save_warm_start(replace(other, policy=TINY_POLICY.untrained(task, seed=8)), tmp_path / "start.safetensors")
    events: list[tuple] = []
    assert run_cell(given, tmp_path, 0, lambda *event: events.append(event)) == "error"
    assert "was replaced while the grid was running" in events[-1][-1]
    with pytest.raises(UsageError, match="vcpo-bench lab warmup"):
        plan_grid(replace(spec, start=tmp_path / "none"))


def test_regimes_are_an_axis_and_lag_zero_is_one_cell_whatever_the_regime() -> None:
    spec = GridSpec(methods=("clip",), staleness=(0, 3), seeds=(0,), regimes=("fifo", "minibatch", "random(uniform)"))
    found = Counter((c.config.method, c.config.regime, c.config.staleness) for c in plan_grid(spec))
    methods, regimes = ("clip", "reinforce"), ("fifo", "minibatch", "random")
    assert found == {(m, r, 3): 1 for m in methods for r in regimes} | {(m, "fifo", 0): 1 for m in methods}


def test_a_proximal_anchor_runs_where_a_rollout_feeds_several_updates() -> None:
    wanted = {"methods": ("clip(anchor=proximal)",), "staleness": (3,), "seeds": (0,), "controls": False}
    assert len(plan_grid(GridSpec(**wanted, regimes=("minibatch",)))) == 1
    for regimes in (("fifo",), ("minibatch", "inflight")):
        with pytest.raises(UsageError, match="proximal"):
            plan_grid(GridSpec(**wanted, regimes=regimes))


def test_the_fill_before_a_held_budget_is_counted() -> None:
    def updates(regime: str) -> list[int]:
        spec = GridSpec(methods=("clip",), staleness=(0, 4), seeds=(0,), controls=False, regimes=(regime,), **TINY)
        return sorted(cell.updates for cell in plan_grid(spec))

    assert updates("fifo") == [4, 4]
    assert updates("fifo(fill=hold)") == [4, 8]


def test_a_failed_cell_keeps_its_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_later(trainer: Trainer) -> tuple[float, float]:
        if trainer.step == 1:
            raise RuntimeError("broken")
        trainer.recorder.tables["events.parquet"].append({"step": 0, "event": "sampler_died"})
        return advance(trainer)

    advance = Trainer.advance
    monkeypatch.setattr(Trainer, "advance", fail_later)
    monkeypatch.setattr("vcpo_bench.bench.running.cell.run_cell.CHECKPOINT_SECONDS", 0.0)
    asked = GridSpec(("clip",), (1,), (0,), controls=False, regimes=("async(clock=virtual)",), **TINY)
    (cell,) = plan_grid(asked)
    assert run_cell(cell, tmp_path, 0, lambda *_: None) == "error"
    assert pq.read_table(tmp_path / cell.key / "events.parquet")["event"].to_pylist() == ["sampler_died"]


def test_an_optimizer_is_part_of_a_cell_and_no_old_key_moves() -> None:
    plain = GridSpec(methods=("clip",), staleness=(0,), seeds=(0,), controls=False)
    (usual,) = plan_grid(plain)
    for text in ("adamw", "adamw(beta2=0.999)"):
        assert plan_grid(replace(plain, settings=CellSettings(optimizer=text)))[0].key == usual.key
    (other,) = plan_grid(replace(plain, settings=CellSettings(optimizer="adamw(beta2=0.980)")))
    assert other.key != usual.key
    assert other.config.optimizer == "adamw(beta2=0.98)"
    assert other.config.label == f"{usual.config.label} adamw(beta2=0.98)"
    with pytest.raises(UsageError, match=r"unknown optimizer 'adam'.*adamw"):
        plan_grid(replace(plain, settings=CellSettings(optimizer="adam")))


class Other(Tiny):
    """The same network as another policy."""

    name = "other"


def test_a_policy_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = GridSpec(methods=("clip",), staleness=(0,), seeds=(0,), tasks=("chain",), controls=False)
    with pytest.raises(UsageError, match=r"unknown policy 'moe'"):
        plan_grid(replace(plain, settings=CellSettings(policy="moe")))
    monkeypatch.setattr(SharedParts, "policy", Other())
    with pytest.raises(UsageError, match=r"--policy other: a built-in policy, and --model names another"):
        plan_grid(replace(plain, model="somewhere"))
    assert plan_grid(plain)[0].config.label == "clip lag 0 seed 0 chain other lr 3e-4"


def test_workers_by_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [worker_count(0, device) for device in ("cuda", "cuda:1")] == [2, 1]
    assert worker_count(0, "cuda", SAMPLERS.parse("vllm")) == 1, "engines all take the first GPU"
    assert worker_count(3, "cuda", SAMPLERS.parse("vllm")) == 3
    with pytest.raises(UsageError, match="--device cuda:2: this machine has 2 CUDA devices"):
        worker_count(0, "cuda:2")


def test_the_longest_response_of_a_token_task_needs_no_model() -> None:
    spec = GridSpec(methods=("clip",), staleness=(1,), seeds=(0,), controls=False, **TINY)
    (cell,) = plan_grid(spec)
    assert longest_response(cell.config) == token_task("walk-eos").max_response
