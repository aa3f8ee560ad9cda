"""The page of each cell: how it ended, why, and its small curves."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from vcpo_bench.reports.report import build
from vcpo_bench.reports.sections import cell_pages as cell_pages_module
from vcpo_bench.reports.sections.cell_curves import HEIGHT, WIDTH, spark_svg
from vcpo_bench.reports.sections.cell_pages import CellPage, cell_pages, grouped
from vcpo_bench.reports.study import Study, bin_edges, binned, binned_runs
from vcpo_bench.reports.writers.html import render_document


@pytest.fixture(scope="module")
def pages(study: Study) -> list[CellPage]:
    return cell_pages(study)


def test_every_cell_has_a_page_with_its_verdict(study: Study, pages: list[CellPage]) -> None:
    assert len(pages) == len(study.cells)
    collapsed = next(one for one in pages if "reinforce" in one.title and "lag 16" in one.title)
    assert collapsed.status.startswith("collapse, onset at update ")
    assert collapsed.bad
    healthy = next(one for one in pages if "vcpo, seed 0" in one.title)
    assert (healthy.status, healthy.bad) == ("healthy", False)
    assert "reason" not in dict(healthy.facts)
    failed = next(one for one in pages if one.status == "not applicable")
    assert dict(failed.facts)["reason"] == "ValueError: broken on purpose"


def test_small_curves_stay_in_their_frame_and_mark_the_onset(pages: list[CellPage]) -> None:
    for one in pages:
        assert [spark.label for spark in one.sparks] == ["reward", "ESS ratio", "gradient norm", "KL", "lag"]
        for spark in one.sparks:
            numbers = np.array(spark.path.replace("M", " ").replace("L", " ").split(), dtype=float).reshape(-1, 2)
            assert 0 <= numbers[:, 0].min() <= numbers[:, 0].max() <= WIDTH
            assert 0 <= numbers[:, 1].min() <= numbers[:, 1].max() <= HEIGHT
            assert (spark.mark is not None) == ("onset" in one.status)
    bad = next(one for one in pages if "onset" in one.status)
    assert 'class="onset"' in spark_svg(bad.sparks[0])


def test_a_curve_carries_what_its_axes_are_drawn_from(study: Study, pages: list[CellPage]) -> None:
    one = next(one for one in pages if "onset" in one.status)
    onset = float(one.status.rpartition(" ")[2])
    lag = one.sparks[-1]
    assert (lag.onset, lag.asked, lag.low) == (onset, float(dict(one.place)["lag"]), 0.0)
    assert lag.high >= lag.asked
    for spark in one.sparks:
        values = study.steps[dict(one.facts)["key"]] if spark.label != "reward" else study.evals[dict(one.facts)["key"]]
        scales = json.loads(str(spark_svg(spark)).split('data-scales="')[1].split('"')[0])
        assert scales[0] == spark.last == values["step"].max()
        assert scales[3:] == [int(spark.log), onset, spark.asked]
        assert scales[1] == pytest.approx(spark.low, rel=1e-3)


def test_a_cell_says_its_lag_and_settings_and_links_its_files(study: Study, tmp_path: Path) -> None:
    folder = Path(str(study.results.cells["path"].iloc[0])).parents[1]
    for one in cell_pages(study, home=folder):
        facts = dict(one.facts)
        assert facts["lag"].startswith(f"{dict(one.place)['lag']} requested")
        assert "updates planned" in facts["settings"]
        assert one.files == f"cells/{facts['key']}"
        assert (folder / unquote(one.link)).is_dir()
        assert " " not in one.link
    assert cell_pages(study)[0].files == ""
    assert cell_pages(study, home=tmp_path)[0].files.startswith("../")


def test_a_collapse_reaches_the_floor_of_the_reward_curve(pages: list[CellPage]) -> None:
    collapsed = next(one for one in pages if one.status.startswith("collapse"))
    last = collapsed.sparks[0].path.split("L")[-1].split()
    assert float(last[1]) >= HEIGHT - 4


def test_many_cells_are_folded_by_everything_but_the_seed(
    study: Study, pages: list[CellPage], monkeypatch: pytest.MonkeyPatch
) -> None:
    document = build(study)
    document.sections = document.sections[:1]
    assert 'class="cells"' not in render_document(document, pages)
    monkeypatch.setattr(cell_pages_module, "MANY", len(pages) - 1)
    groups = grouped(pages)
    assert [cell for group in groups for cell in group.cells] == pages
    assert len({group.title for group in groups}) == len(groups) < len(pages)
    for group in groups:
        assert {cell.title.rpartition(", seed ")[0] for cell in group.cells} == {group.title}
        assert group.collapsed == sum(cell.bad for cell in group.cells)
    text = render_document(document, pages)
    assert text.count('<details class="cells">') == len(groups)
    assert text.count('<details class="cell" ') == len(pages)
    assert text.count("<details") == text.count("</details>")
    worst = max(groups, key=lambda group: group.collapsed)
    line = f'{worst.title}: {len(worst.cells)} cells, <span class="bad">{worst.collapsed} collapsed</span></summary>'
    assert line in text


def test_a_document_without_cells_has_no_cell_section(study: Study) -> None:
    document = build(study)
    document.sections = document.sections[:2]
    text = render_document(document, [])
    assert 'id="cells"' not in text
    assert 'href="#in-short">Skip' in text


def test_runs_binned_together_are_those_binned_alone() -> None:
    random = np.random.default_rng(0)
    runs = [(np.arange(float(size)), random.normal(size=size)) for size in (7, 40, 1, *[40] * 70)]
    runs[1][1][5:20] = np.nan
    edges = bin_edges(39, 8)
    alone = np.stack([binned(steps, values, edges) for steps, values in runs])
    np.testing.assert_array_equal(binned_runs(runs, edges), alone)
    assert np.isnan(alone[0, 2:]).all()


def test_binned_means_skip_what_is_missing() -> None:
    steps, values = np.arange(6.0), np.array([1.0, 3.0, np.nan, np.nan, 5.0, np.inf])
    assert binned(steps, values, bin_edges(5, 3))[[0, 2]].tolist() == [2.0, 5.0]
    assert np.isnan(binned(steps, values, bin_edges(5, 3))[1])
    assert bin_edges(2, 40).tolist() == [0.0, 1.0, 2.0, 3.0]
