"""What the measurements of the GPU day conclude: nothing that is wrong passes, and one failure keeps the rest."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import mock_day
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

import kit
from stages import equality, norms, stack, tiny


def setup(folder: Path) -> kit.Setup:
    return kit.Setup("cpu", True, folder, lambda: 60.0)


def test_a_wrong_gradient_is_noticed_and_the_others_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert equality.sampler(setup(tmp_path))["errors"]["walk"] < 1e-4

    def gradient_error(name: str, device: str) -> float:
        if name == "clip":
            raise AssertionError("no routers")
        return {"vcpo": 0.5, "tis": float("nan")}.get(name, 0.0)

    monkeypatch.setattr(equality, "_gradient_error", gradient_error)
    with pytest.raises(kit.Failed) as raised:
        equality.updates(setup(tmp_path))
    wanted = ("clip: AssertionError: no routers", "tis: gradient off by nan", "vcpo: gradient off by 5.0e-01")
    assert str(raised.value) == "; ".join(wanted)
    assert len(raised.value.result["errors"]) > 60


def test_graphs_of_the_tiny_policy_are_compared_with_its_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tiny.measure(setup(tmp_path))
    assert found["same_tokens"]
    assert found["gradient_error"] == 0.0
    assert [row["part"] for row in found["parts"]] == ["rollout", "score", "backward", "step"]
    monkeypatch.setattr(tiny, "eager", lambda step: lambda: None)
    with pytest.raises(kit.Failed, match="a graph differs from its kernels"):
        tiny.measure(setup(tmp_path))


@pytest.mark.parametrize("name", ["reinforce", "vcpo", "decoupled"])
def test_the_same_device_gives_the_same_gradient(name: str) -> None:
    assert equality._gradient_error(name, "cpu") == 0.0


@pytest.mark.slow
def test_an_update_on_the_mock_device_mixes_no_devices() -> None:
    """Where tensors of two devices meet, the mock device raises as a GPU does."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(mock_day.gradient_error, "vcpo").result() == 0.0


@pytest.mark.parametrize(
    ("stacked", "alone", "equal"),
    [
        ([1.0, 0.0], [1.0, 0.0], True),
        ([1.0005, 0.0], [1.0, 0.0], True),
        ([1.01, 0.0], [1.0, 0.0], False),
        ([1.0, 1e-2], [1.0, 0.0], False),
        ([1.0, 0.0], [1.0, float("nan")], False),
        ([float("nan"), float("nan")], [float("nan"), 0.0], False),
        ([float("inf")], [float("inf")], False),
    ],
)
def test_gradient_norms_of_zero_and_nan_are_compared(stacked: list[float], alone: list[float], equal: bool) -> None:
    assert (stack.difference(stacked, alone) <= stack.TOLERANCE) == equal


def test_no_method_of_a_stack_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A norm that is not a number fails, whatever place its method has."""
    monkeypatch.setattr(stack, "build_trainer", lambda config, device: config.method)
    norms_of = {"clip": [float("nan")], "vespo": [0.0]}
    monkeypatch.setattr(stack, "_norms", lambda names, stacked: [norms_of.get(name, [1.0]) for name in names])
    with pytest.raises(kit.Failed, match=r"a stack differs from its cells: \{'clip': inf\}"):
        stack.equality(setup(tmp_path))


class SomeWays:
    """A step, and one with norms that needs too much memory."""

    def __init__(self, *_: object) -> None:
        self.state = False

    def make_state(self) -> None:
        self.state = True

    def plain(self) -> None:
        assert self.state

    def bookkeeping(self) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate")

    def drop(self) -> None:
        self.state = False


def test_wrong_norms_and_too_little_memory_leave_the_other_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(norms, "Ways", SomeWays)
    monkeypatch.setattr(norms, "_network", lambda shape: torch.nn.Linear(2, 3))
    errors = dict.fromkeys(norms.TOLERANCES, 1e-7) | {"bfloat16 against one by one": float("nan")}
    monkeypatch.setattr(norms, "_errors", lambda setup: dict(errors))
    wanted = "bfloat16 against one by one: norms are off by nan; bookkeeping: OutOfMemoryError: CUDA out of memory"
    with pytest.raises(kit.Failed, match=wanted) as raised:
        norms.measure(setup(tmp_path))
    found = raised.value.result
    assert found["float32 against float64"] == 1e-7
    rows = {row["way"]: row for row in found["ways"]}
    assert ["seconds" in row for row in rows.values()] == [True, False]
    assert rows["plain"]["launches"] == rows["plain"]["waits"] == 0
