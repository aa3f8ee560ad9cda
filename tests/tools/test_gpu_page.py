"""The page about the GPU is what was measured there, and so is what other pages quote from it."""

from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest

from vcpo_bench.bench.machine.gpu_estimate import LAYER_SECONDS
from vcpo_bench.bench.running.stacks import GPU_STACK

ROOT = Path(__file__).resolve().parents[2]
gpu_page = SimpleNamespace(**run_path(str(ROOT / "tools" / "gpu_page.py")))
DAY = gpu_page.measured()


def text(name: str) -> str:
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def test_the_page_is_current() -> None:
    assert gpu_page.PAGE.read_text(encoding="utf-8") == gpu_page.page(), "run: python tools/gpu_page.py"


def test_every_measurement_is_shown_or_said_to_be_cut() -> None:
    page = gpu_page.page()
    cut = {name for name, facts in DAY.items() if facts["status"] != "ok"}
    assert not any(facts["status"] == "failed" for facts in DAY.values())
    assert all(f"`{name}`" in page for name in cut - {"thousand"})
    assert "not reached" in page
    assert DAY["updates"]["result"]["refused"] == DAY["updates"]["result"]["failed"] == {}


def test_the_stack_of_the_default_is_the_best_measured() -> None:
    rows = {row["cells"]: row for row in DAY["sizes"]["result"]["stacks"]}
    each = {cells: row["ms_per_cell"] for cells, row in rows.items()}
    assert each[GPU_STACK] < 1.01 * min(each.values())
    quoted = f"takes {each[128]:.2f} ms in a stack of 128, {each[1] / each[128]:.1f} times less than alone"
    assert quoted in text("docs/stack.md")
    assert f"within {DAY['equality']['result']['largest_difference']:.1e}".replace("e-06", "e-6") in text(
        "docs/stack.md"
    )
    thousand = DAY["thousand"]["result"]
    assert f"{thousand['ended']} of the 1,000 cells had ended after {thousand['wall_seconds']:.0f} s" in text(
        "docs/stack.md"
    )
    assert f"{1024 * rows[256]['gib'] / 256:.0f} MB on the H200" in text("docs/stack.md")


def test_the_estimate_uses_what_was_measured() -> None:
    each = gpu_page.layer_milliseconds(DAY)
    assert pytest.approx(each["torch"] / 1e3, rel=0.05) == LAYER_SECONDS
    assert f"{each['generate']:.1f} to {each['torch']:.1f} ms per layer and token" in text("docs/language_models.md")


def test_the_estimate_is_as_far_off_as_the_docs_say() -> None:
    rows = gpu_page.against_estimate(DAY)
    plain, norms = ([row[name] / row["estimated_gib"] for row in rows] for name in ("gib", "norms_gib"))
    times = {row["size"]: row["seconds"] / row["estimated_seconds"] for row in rows}
    small, large = ([time for size, time in times.items() if size.startswith(model)] for model in ("100M", "1B"))
    page = text("docs/tasks.md")
    assert f"at {min(plain):.2f} to {max(plain):.2f} of the estimated memory without score norms" in page
    assert f"at {min(norms):.2f} to {max(norms):.2f} with them" in page
    assert f"{min(large):.1f} to {max(large):.1f} times the estimated time at 1 B" in page
    assert f"{min(small):.1f} to {max(small):.1f} times at 100 M" in page


def test_norms_and_gradients_are_quoted_as_measured() -> None:
    ratios = [
        row["ratio"]
        for size in gpu_page.SIZES
        for row in DAY[f"norms-{size}"]["result"]["ways"]
        if row["way"] == "bookkeeping"
    ]
    said = f"{min(ratios):.1f} to {max(ratios):.1f} times a"
    assert said in gpu_page.page()
    assert said in text("docs/score_norms.md")
    error = DAY["exactness"]["result"]["bfloat16 against one by one"]
    assert f"{error:.1e}".replace("e-04", "e-4") in text("docs/score_norms.md")
    trl = [DAY[f"trl-{micro}"]["result"] for micro in (1, 4)]
    assert f"{trl[0]['checked']} expressions agreed with an oracle within 1.7e-6" in text("docs/trl.md")
    assert max(one["largest_error"] for one in trl) < 1.7e-6
    for size in gpu_page.SIZES:
        by_way = {row["way"]: row["ratio"] for row in DAY[f"norms-{size}"]["result"]["ways"]}
        assert by_way["bookkeeping"] < min(by_way["second_backward"], by_way["micro_batch_of_one"])
