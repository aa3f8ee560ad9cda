"""The probe on recorded runs: it samples what the run's own sampler would have, and measures what its learner did."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from command_line import call, refused
from rich.console import Console

from vcpo_bench.bench.replay.probe import ProbeSpec, check_probe, command, default_path, run_probe
from vcpo_bench.bench.replay.recorded_cell import RecordedCell
from vcpo_bench.bench.replay.replay import Replay
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.methods import parse_method
from vcpo_bench.records import PROBES
from vcpo_bench.reports.terminal.probe_table import probe_tables, read_probe

pytestmark = pytest.mark.usefixtures("few_questions")

STEPS, LAG = 8, 3
SIZES = {"steps": STEPS, "prompts": 3, "responses": 4}
Recorded = Callable[..., RecordedCell]


def spec(cell: RecordedCell, *steps: int, methods: str = "vcpo", n: int = 8) -> ProbeSpec:
    return ProbeSpec(cell, steps, [parse_method(text) for text in methods.split(";")], n, n)


@pytest.mark.parametrize(
    ("method", "regime", "step", "version"),
    [
        ("vcpo", "fifo", 6, 3),
        ("clip+ess(base=measured)", "fifo", 6, 3),
        ("vespo", "fifo(engine_noise=0.1,publish_every=2)", 7, 4),
        ("clip", "fifo(engine_noise=int8)", 2, 0),
        ("clip+kl(anchor=reference)", "minibatch", 6, 4),
    ],
)
def test_with_the_runs_own_batch_the_probe_sees_the_runs_own_update(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, method: str, regime: str, step: int, version: int
) -> None:
    cell = recorded(method, regime)
    wanted = spec(cell, step, methods=method)
    assert check_probe(wanted) == {step: version}
    monkeypatch.setattr(command, "_STALE", step)  # the first batch then is the one that the run consumed
    replay = Replay(cell, version)
    replay.to(step, keep={version})
    point = command._point(wanted, replay, version)
    assert point.lag == step - version
    own = replay.trainer.source.next_batch(step).batch
    if regime != "minibatch":  # there the groups of a rollout are shuffled
        assert torch.equal(own.responses, point.stale[0].responses)
        assert torch.equal(own.behavior_logp, point.stale[0].behavior_logp)
        assert torch.equal(own.version, point.stale[0].version)
    (found,) = point.estimators(wanted.methods).updates([own, *point.stale[1:3]], step)
    steps = pq.read_table(cell.folder / "steps.parquet").to_pydict()
    assert float(found.gradients[0].norm()) == pytest.approx(steps["grad_norm"][step], rel=1e-4)
    assert found.scales[0] == pytest.approx(steps["step_scale"][step], rel=1e-4)
    assert not torch.equal(found.gradients[0], found.gradients[1])


def test_fresh_batches_come_from_the_weights_at_the_checkpoint_and_from_streams_of_their_own(
    recorded: Recorded,
) -> None:
    cell = recorded()
    replay = Replay(cell, 3)
    replay.to(6, keep={3})
    point = command._point(spec(cell, 6), replay, 3)
    samples = {"stale": point.stale, "fresh": point.fresh, "control": point.control}
    for name, batches in samples.items():
        assert len({batch.prompts.numpy().tobytes() for batch in batches}) == 8, name
        assert {int(batch.version.max()) for batch in batches} == {3 if name == "stale" else 6}
        again = replay.trainer.learner.logp(batches[0])
        assert torch.allclose(again, batches[0].behavior_logp, atol=1e-4) == (name != "stale")
    prompts = [batch.prompts for batches in samples.values() for batch in batches]
    assert len({p.numpy().tobytes() for p in prompts}) == 24


@pytest.mark.parametrize("method", ["clip", "sis"])
def test_a_method_that_reads_whole_distributions_is_probed_and_the_run_goes_on(recorded: Recorded, method: str) -> None:
    said: list[str] = []
    rows = command.probe_cell(spec(recorded(method), 1, STEPS, methods="sis"), said.append)
    assert {row["step"] for row in rows if row["method"] == "sis"} == {1, STEPS}
    assert all("bit-identical" in text for text in said)


def test_the_table_is_written_beside_the_results_and_is_the_same_every_time(recorded: Recorded, tmp_path: Path) -> None:
    cell = recorded()
    said: list[str] = []
    target = default_path(cell)
    assert target == cell.folder.parents[1] / "probes" / f"{cell.key}.parquet"
    asked = spec(cell, 6, 0, methods="tis;vcpo;clip+entropy")
    run_probe(asked, target, said.append)
    assert [line.split(": ")[1].split(" from")[0] for line in said] == ["0 updates replayed", "6 updates replayed"]
    assert "nothing to compare" in said[0]
    assert "bit-identical to the record" in said[1]
    run_probe(asked, tmp_path / "new" / "again.csv", said.append)
    first, second = read_probe(target), read_probe(tmp_path / "new" / "again.csv")
    assert list(first.columns) == [column.name for column in PROBES]
    pd.testing.assert_frame_equal(first, second)
    assert set(first["key"]) == {cell.key}
    assert first.groupby(["step", "preconditioned"]).size().index.tolist() == [(0, False), (6, False), (6, True)]
    at_start = first[(first["step"] == 0) & (first["method"] == "tis")]
    assert set(at_start["lag"]) == {0}
    assert (first["low"] <= first["high"]).sum() > 0.9 * len(first)
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(probe_tables(target))
    text = console.export_text()
    assert "after 6 updates, preconditioned by AdamW (8 stale and 8 fresh batches)" in text
    snr = first[(first["step"] == 6) & (first["quantity"] == "snr") & (first["method"] == "vcpo")]["value"].iloc[0]
    assert f"{snr:.3g}" in text


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("no table")
    with pytest.raises(DamagedResultError, match=r"a\.parquet cannot be read"):
        read_probe(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("method,step\n")
    with pytest.raises(DamagedResultError, match="lacks the column 'key'"):
        read_probe(tmp_path / "b.csv")


@pytest.mark.parametrize(
    ("regime", "step", "methods", "said"),
    [
        ("fifo", 9, "vcpo", "made 8 updates"),
        ("fifo", 6, "reinforce+gac", "acts on the previous gradient"),
        ("fifo", 6, "reinforce+gap-aware", "how far the weights have moved"),
        ("fifo", 6, "clip+lr-matched(to=vcpo)", "uses the step scales"),
        ("fifo", 6, "clip(anchor=proximal)", "proximal"),
        ("fifo", 6, "clip+void-turns", "has no environment"),
        ("minibatch", 6, "clip(anchor=proximal)", "fresh data do not have"),
        ("random(unit=trajectory)", 6, "vcpo", "data of versions 3 to 6"),
        ("inflight", 6, "vcpo", "data of versions 3 to 6"),
        ("minibatch(epochs=2)", 6, "vcpo", "no single policy samples"),
        ("async(clock=virtual)", 6, "vcpo", "no single policy samples"),
    ],
)
def test_what_cannot_be_probed_is_refused(recorded: Recorded, regime: str, step: int, methods: str, said: str) -> None:
    cell = recorded()
    other = RecordedCell(cell.folder, cell.key, replace(cell.config, regime=regime), cell.updates, cell.start)
    with pytest.raises(UsageError, match=said):
        check_probe(spec(other, step, methods=methods))


@pytest.mark.slow
def test_probe_and_fork_on_the_command_line(recorded: Recorded, tmp_path: Path) -> None:
    folder = recorded().folder
    sizes = ("--batches", "8", "--fresh", "8")
    probed = call("lab", "probe", folder, "--at", "4", "--methods", "tis,vcpo,tis", *sizes, "--out", tmp_path / "p.csv")
    assert probed.exit_code == 0, probed.output
    assert "4 updates replayed from the start, bit-identical to the record" in probed.output
    methods = read_probe(tmp_path / "p.csv")["method"].unique().tolist()
    assert methods == ["truth", "reinforce", "tis", "vcpo"]
    asked = ("lab", "fork", folder, "--at", "4", "--methods", "vespo", "--out", tmp_path / "fork", "--jobs", "1", "-q")
    forked = call(*asked)
    assert forked.exit_code == 0, forked.output
    assert "5 updates replayed from the start, bit-identical to the record" in forked.output
    assert "vcpo*" in forked.output
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "fork" / "cells").rglob("*.parquet")}
    assert len(times) >= 6
    assert "replayed" not in call(*asked).output
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "fork" / "cells").rglob("*.parquet")} == times


@pytest.mark.parametrize(
    ("command_line", "said"),
    [
        (("lab", "probe", "{cell}", "--at", "9"), "--at 9"),
        (("lab", "probe", "{cell}", "--at", "soon"), "'soon'"),
        (("lab", "probe", "{cell}", "--at", "4", "--methods", "vcop"), "vcpo"),
        (("lab", "probe", "{cell}", "--at", "4", "--fresh", "1"), "--fresh 1"),
        (("lab", "probe", "{cell}x", "--at", "4"), "did you mean"),
        (
            ("lab", "probe", "{cell}", "--at", "4", "--out", "{cell}/cell.json/p.csv"),
            "does not exist; create it or choose another",
        ),
        (("lab", "fork", "{cell}", "--at", "4", "--methods", "vcop", "--out", "{new}"), "vcpo"),
        (("lab", "fork", "{cell}", "--at", "9", "--methods", "clip", "--out", "{new}"), "--at 9"),
        (("lab", "fork", "{cell}", "--at", "4", "--methods", ",", "--out", "{new}"), "--methods"),
        (("lab", "fork", "nowhere", "--at", "4", "--methods", "clip", "--out", "{new}"), "no ended cell"),
    ],
)
def test_bad_input_is_one_clear_line(
    recorded: Recorded, tmp_path: Path, command_line: tuple[str, ...], said: str
) -> None:
    cell = str(recorded().folder)
    assert said in refused(*(part.format(cell=cell, new=tmp_path / "new") for part in command_line))
    assert not (tmp_path / "new").exists()


def test_intervals_of_fixed_samples_do_not_depend_on_what_else_is_probed(recorded: Recorded, tmp_path: Path) -> None:
    cell = recorded()
    tables = []
    for number, methods in enumerate(("vcpo;clip", "tis;vcpo")):
        run_probe(spec(cell, 5, methods=methods), tmp_path / f"{number}.parquet", lambda _: None)
        table = read_probe(tmp_path / f"{number}.parquet")
        kept = (table["method"] == "vcpo") & ~table["quantity"].str.endswith("_ratio")
        tables.append(table[kept][["preconditioned", "quantity", "value", "low", "high"]].reset_index(drop=True))
    np.testing.assert_allclose(tables[0]["value"], tables[1]["value"], rtol=1e-5)
    np.testing.assert_allclose(tables[0]["low"], tables[1]["low"], rtol=1e-4, atol=1e-9)
