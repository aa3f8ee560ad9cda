"""The GPU day's own machinery: every measurement leaves a file, a failure is a result, and a second call continues."""

import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import mock_day
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

import day
import kit
import stages
from stages import equality


def fails(setup: kit.Setup) -> dict[str, object]:
    raise ValueError("the driver said no")


def stops(setup: kit.Setup) -> dict[str, object]:
    raise kit.Unfinished("out of time")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stage 1 is four small measurements; the list says which ran."""
    ran: list[str] = []

    def works(setup: kit.Setup) -> dict[str, object]:
        ran.append("works")
        return {"size": setup.pick("large", "small"), "rows": [{"a": 1.0, "b": {"c": 0.25}}]}

    monkeypatch.setitem(stages.STAGES, 1, {"works": works, "fails": fails})
    monkeypatch.setitem(stages.STAGES, 2, {"works": works, "stops": stops})
    return ran


def call(out: Path, *more: str) -> int:
    return day.main(["--out", str(out), "--device", "cpu", "--tiny", *more])


def test_a_failure_is_a_result_and_what_is_done_is_not_repeated(tmp_path: Path, measured: list[str]) -> None:
    assert [call(tmp_path, "--stage", "1") for _ in range(2)] == [1, 1]
    assert measured == ["works"]
    found = json.loads((tmp_path / "stage1-works.json").read_text())
    assert found["status"] == "ok"
    assert found["result"]["size"] == "small"
    assert found["versions"]["torch"] == torch.__version__
    failed = json.loads((tmp_path / "stage1-fails.json").read_text())
    assert failed["error"] == "ValueError: the driver said no"
    assert "def fails" not in failed["error"]


def test_what_is_left_has_an_exit_code_of_its_own(tmp_path: Path, measured: list[str]) -> None:
    assert call(tmp_path, "--stage", "2") == 3
    assert call(tmp_path / "none", "--stage", "2", "--limit", "0") == 3
    assert measured == ["works"]


def test_the_summary_is_markdown(tmp_path: Path, measured: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    call(tmp_path, "--stage", "1")
    capsys.readouterr()
    assert call(tmp_path, "--summary") == 0
    text = capsys.readouterr().out
    assert "## Stage 1: works" in text
    assert "the numbers mean nothing" in text
    assert "| 1 | c 0.25 |" in text
    assert "**failed**: ValueError: the driver said no" in text


def test_a_wrong_gradient_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = kit.Setup("cpu", True, tmp_path, lambda: 60.0)
    assert equality.sampler(setup)["walk"] < 1e-4
    monkeypatch.setattr(equality, "_gradient_error", lambda name, device: 0.5 if name == "vcpo" else 0.0)
    with pytest.raises(RuntimeError, match=r"vcpo: gradient off by 5\.0e-01"):
        equality.updates(setup)


@pytest.mark.parametrize("name", ["reinforce", "vcpo"])
def test_the_same_device_gives_the_same_gradient(name: str) -> None:
    assert equality._gradient_error(name, "cpu") == 0.0


def test_an_update_on_the_mock_device_mixes_no_devices() -> None:
    """Where tensors of two devices meet, the mock device raises as a GPU does."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(mock_day.gradient_error, "vcpo").result() == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("stage", sorted(stages.STAGES))
def test_a_stage_passes_in_its_cpu_form(stage: int, tmp_path: Path) -> None:
    if stage > 2:
        pytest.importorskip("transformers", reason="runs in .ci/integrations gpu_day")
    assert call(tmp_path, "--stage", str(stage)) == 0
