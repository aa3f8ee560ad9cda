"""Cells of different versions of the rules never meet: in no scoreboard, analysis or report, and in no folder."""

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import RUN, call, refused

from vcpo_bench.records import RULES_VERSION

OLD = "0.9"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, make_results: Callable[..., Path]) -> list[str]:
    """Two results folders, of the old and of today's rules."""
    root = tmp_path_factory.mktemp("rules")
    few = {"lags": (16,), "seeds": (0,), "steps": 20, "controls": False}
    old = make_results(root / "old", methods=("clip",), rules_version=OLD, **few)
    return [str(old), str(make_results(root / "new", methods=("vcpo",), **few))]


@pytest.mark.parametrize(
    "verb", ["show", "compare", "lab analyze collapse", "report --html FILE", "lab calibrate --out FILE"]
)
def test_reading_both_is_refused_with_the_name_of_each(verb: str, folders: list[str], tmp_path: Path) -> None:
    old, new = folders
    assert f"rules versions {OLD} ({old}) and {RULES_VERSION} ({new}), which cannot be compared" in refused(
        *verb.replace("FILE", str(tmp_path / "file")).split(), old, new
    )
    assert not list(tmp_path.iterdir())


def test_a_folder_of_old_rules_alone_can_be_read(folders: list[str]) -> None:
    result = call("show", folders[0])
    assert result.exit_code == 0
    assert f"rules version {OLD}; this program has version {RULES_VERSION}" in result.stderr


@pytest.mark.parametrize("running", [False, True])
def test_a_run_does_not_add_to_cells_of_old_rules(
    running: bool, make_results: Callable[..., Path], tmp_path: Path
) -> None:
    partial = ("tis",) if running else ()
    few = {"methods": ("tis",), "lags": (1,), "seeds": (0,), "steps": 60, "controls": False}
    out = make_results(tmp_path / "old", rules_version=OLD, partial=partial, **few)
    before = {*out.rglob("*")}
    assert f"ran under rules {OLD}, and cells now run under {RULES_VERSION}" in refused(*RUN, "--out", str(out))
    assert {*out.rglob("*")} == before
