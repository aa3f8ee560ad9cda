"""The notebooks read results through `vb`, as the page on Python says; that they run is tested in .ci/integrations."""

import json
from collections.abc import Callable
from pathlib import Path

import matplotlib
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def code_of(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_results_are_read_by_vb(path: Path) -> None:
    code = "\n".join(code_of(path))
    assert "import vcpo_bench as vb" in code
    assert "analysis.results" not in code


def test_the_picture_of_an_own_method_is_drawn_from_its_tables(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    make_results(tmp_path / "results", ("vcpo", "tis"), (16,), (0,), 40, controls=False)
    (drawing,) = [code for code in code_of(NOTEBOOKS[0]) if "vb.load(" in code]
    names = {"folder": tmp_path, "plt": pyplot}
    exec(drawing.replace("plt.show()", ""), names)
    lines = names["axis"].get_lines()
    pyplot.close("all")
    assert sorted(line.get_label() for line in lines) == ["tis, lag 16", "vcpo, lag 16"]
    assert [len(line.get_xdata()) for line in lines] == [5, 5]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_it_shows_can_be_read_without_running_it(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    pictures = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    assert pictures
    assert path.stat().st_size < 300_000
    assert path.name in (path.parents[1] / "docs" / "examples.md").read_text()
