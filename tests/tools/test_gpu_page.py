"""The page about the GPU is what was measured there, and so is what other pages quote from it."""

from pathlib import Path

import pytest
from gpu_page import numbers
from gpu_page.page import PAGE, page

from vcpo_bench.bench.machine.gpu_estimate import LAYER_SECONDS
from vcpo_bench.bench.running.stacks import GPU_STACK

ROOT = Path(__file__).resolve().parents[2]
DAY = numbers.measured()


def text(name: str) -> str:
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tools/gpu_page/page.py"


def test_every_measurement_is_shown_or_said_to_be_cut() -> None:
    whole = page()
    cut = {name for name, facts in DAY.items() if facts["status"] != "ok"}
    assert not any(facts["status"] == "failed" for facts in DAY.values())
    assert all(f"`{name}`" in whole for name in cut - {"thousand"})
    assert "not reached" in whole
    assert DAY["updates"]["result"]["refused"] == DAY["updates"]["result"]["failed"] == {}


def test_the_stack_of_the_default_is_the_best_measured() -> None:
    rows = {row["cells"]: row for row in DAY["sizes"]["result"]["stacks"]}
    each = {cells: row["ms_per_cell"] for cells, row in rows.items()}
    assert each[GPU_STACK] < 1.01 * min(each.values())
    alone = 1e3 * DAY["sampling"]["result"]["samplers"][0]["seconds_per_update"]
    page = text("docs/stack.md")
    of_one, unstacked = int(each[1] / each[128]), int(alone / each[128])
    assert (
        f"takes {each[128]:.2f} ms in a stack of 128: 1/{of_one} of a stack of one, and at most 1/{unstacked}" in page
    )
    assert f"within {numbers.bound(DAY['equality']['result']['largest_difference'])}" in page
    thousand = DAY["thousand"]["result"]
    share = 1e3 * 16 * thousand["training_seconds"] / thousand["ended"] / 400
    assert (
        f"they do {16 * each[64] / share:.1f} times the work of one, so that 1,000 cells take about two minutes" in page
    )
    assert 1.5 < 1000 * 400 * share / 16 / 6e4 < 2.5
    assert f"{rows[256]['gib'] / 256 * 2**30 / 1e6:.0f} MB a cell, on a CPU and on the H200" in page


def test_the_estimate_uses_what_was_measured() -> None:
    each, inside = numbers.layer_milliseconds(DAY), numbers.layer_milliseconds(DAY, in_update=True)
    assert pytest.approx(each["torch"] / 1e3, rel=0.05) == LAYER_SECONDS
    said = (
        f"{each['generate']:.1f} to {each['torch']:.1f} ms per layer and token on an H200, and {inside['torch']:.1f} ms"
    )
    assert said in text("docs/language_models.md")
    assert f"`torch` took {inside['torch']:.1f} ms and `generate` {inside['generate']:.2f}" in text("docs/tasks.md")
    rows = {row["sampler"]: row["seconds_per_update"] for row in DAY["sampling"]["result"]["samplers"]}
    assert rows["generate"] < rows["torch"] / 2


def test_the_estimate_is_as_far_off_as_the_docs_say() -> None:
    rows = numbers.against_estimate(DAY)
    page = text("docs/tasks.md")
    plain, norms = (spread(rows, name, "estimated_gib", 2) for name in ("gib", "norms_gib"))
    assert f"at {plain} of the estimated memory without score norms, and at {norms} with them" in page
    small, large = ([row for row in rows if row["size"].startswith(model)] for model in ("100M", "1B"))
    times = [
        [spread(those, name, "estimated_seconds", 1) for name in ("seconds", "norms_seconds")]
        for those in (large, small)
    ]
    assert (
        f"{times[0][0]} times the estimate at 1 B parameters without score norms and {times[0][1]} times with" in page
    )
    assert f"at 100 M it was {times[1][0]} and {times[1][1]} times" in page


def spread(rows: list[dict[str, float]], name: str, estimated: str, digits: int) -> str:
    """The smallest to the largest ratio of what was measured to its estimate."""
    ratios = [row[name] / row[estimated] for row in rows]
    return f"{min(ratios):.{digits}f} to {max(ratios):.{digits}f}"


def test_norms_and_gradients_are_quoted_as_measured() -> None:
    ratios = []
    for size in numbers.SIZES:
        by_way = {row["way"]: row["ratio"] for row in DAY[f"norms-{size}"]["result"]["ways"]}
        ratios.append(by_way["bookkeeping"])
        assert by_way["bookkeeping"] < min(by_way["second_backward"], by_way["micro_batch_of_one"])
        memory = {row["way"]: row["peak_gib"] for row in DAY[f"norms-{size}"]["result"]["ways"]}
        assert memory["bookkeeping"] == max(memory.values()), "as the page says"
    said = f"takes {min(ratios):.1f} to {max(ratios):.1f} times as long as a plain one"
    for name in ("docs/benchmarks/gpu.md", "docs/score_norms.md", "CHANGELOG.md"):
        assert said in text(name)
    assert numbers.bound(DAY["exactness"]["result"]["bfloat16 against one by one"]) in text("docs/score_norms.md")
    trl = [DAY[f"trl-{micro}"]["result"] for micro in (1, 4)]
    most = numbers.bound(max(one["largest_error"] for one in trl))
    assert f"agreed with an oracle within {most} for {trl[0]['checked']} expressions" in text("docs/trl.md")
    zero = {name for one in trl for name, error in one["errors"].items() if error == 0}
    assert zero == {"band", "reinforce+f-grpo", "reinforce+goldilocks", "reinforce+passk"}


@pytest.mark.parametrize(("value", "said"), [(2.509e-6, "2.6e-6"), (2.5e-6, "2.5e-6"), (9.99e-4, "10.0e-4")])
def test_a_bound_is_rounded_up(value: float, said: str) -> None:
    assert numbers.bound(value) == said
