"""The order of the report: every file of `sections/` that declares its place, found by listing the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from vcpo_bench.reports import sections
from vcpo_bench.reports.report import find_sections

SHIPPED = [
    *("in-short", "scoreboard", "ranking", "learning-curves", "ess", "survival", "prediction", "failures", "threats"),
    *("episodes", "reward-lag", "ess-curves", "gradients", "stability", "ablation", "divergence", "realized-lag"),
    *("lm-eval", "time", "probe", "turns", "protocol"),
]


def test_the_sections_that_ship_stand_in_this_order() -> None:
    anchors = [one.anchor for one in find_sections()]
    assert [anchor for anchor in anchors if anchor in SHIPPED] == SHIPPED
    assert len(set(anchors)) == len(anchors)
    assert all(one.place.title for one in find_sections())
    assert sum(not one.place.folded for one in find_sections()) == 9, "what a reader sees without opening anything"


def test_a_file_dropped_into_the_folder_is_a_section_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = 'from vcpo_bench.reports.place import Place\n\nPLACE = Place("Number of cells", 15)\n'
    (tmp_path / "cell_count.py").write_text(place + "\n\ndef blocks(study, ledger):\n    return []\n")
    (tmp_path / "shared_by_sections.py").write_text("")
    monkeypatch.setattr(sections, "__path__", [*sections.__path__, str(tmp_path)])
    found = {one.anchor: one for one in find_sections()}
    assert list(found)[:4] == ["in-short", "cell-count", "scoreboard", "ranking"]
    assert found["cell-count"].place.title == "Number of cells"
    assert "shared-by-sections" not in found
