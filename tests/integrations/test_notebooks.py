"""The notebooks run, and show what their text says they show."""

from pathlib import Path

import pytest
from patience import within

nbformat = pytest.importorskip("nbformat", reason="runs in .ci/integrations notebooks")
nbclient = pytest.importorskip("nbclient", reason="runs in .ci/integrations notebooks")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def test_there_are_two() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["own_method", "reading_results"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=int(within(600)), kernel_name="python3", resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert pictures  # every notebook draws
    printed = "".join(output.get("text", "") for output in outputs)
    assert "error:" not in printed  # of a command line, which ends no cell
