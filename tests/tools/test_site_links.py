"""Links of the documentation site, without building it."""

import importlib.util
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("site_links", ROOT / "tools" / "site" / "links.py")
assert SPEC
assert SPEC.loader
links = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(links)


@pytest.mark.parametrize(
    ("page", "written", "led"),
    [
        ("index.md", "(methods.md#clip)", "(methods.md#clip)"),
        ("index.md", "(benchmarks/)", "(benchmarks/index.md)"),
        ("index.md", "(../errors.py)", "(source/errors.py.md)"),
        ("index.md", "(../CHANGELOG.md)", "(project/CHANGELOG.md)"),
        ("project/README.md", "(docs/index.md)", "(../index.md)"),
        ("methods.md", "(../README.md#methods)", "(project/README.md#methods)"),
        ("methods.md", "(../errors.py)", "(source/errors.py.md)"),
        ("benchmarks/async.md", "(../../setup.py)", "(../source/setup.py.md)"),
        ("benchmarks/async.md", "(../../configs)", "(../source/configs/index.md)"),
        ("project/CHANGELOG.md", "(docs/methods.md)", "(../methods.md)"),
        ("studies/calibration/README.md", "(grids/)", "(grids/index.md)"),
        ("studies/vllm/README.md", "(report.html.gz)", "(report.html)"),
        ("leaderboard.md", "(studies/leaderboard)", "(studies/leaderboard/index.html)"),
        ("index.md", "(../notebooks/own_method.ipynb)", "(notebooks/own_method.md)"),
        ("notebooks/own_method.md", "(../docs/methods.md)", "(../methods.md)"),
    ],
)
def test_a_link_leads_to_the_page_that_shows_what_it_names(page: str, written: str, led: str) -> None:
    assert links.rewrite(f"see [it]{written}.", PurePosixPath(page)) == f"see [it]{led}."


@pytest.mark.parametrize("kept", ["(gone.md)", "(#part)", "(https://example.org/a.md)", "(../../outside.md)"])
def test_what_is_no_file_of_the_repository_is_left_for_mkdocs_to_judge(kept: str) -> None:
    assert links.rewrite(f"[it]{kept}", PurePosixPath("methods.md")) == f"[it]{kept}"


def test_code_blocks_are_left_alone() -> None:
    block = "```python\nrows = table[0](../errors.py)\n```\n"
    assert links.rewrite(block + "[a](../errors.py)", PurePosixPath("index.md")) == block + "[a](source/errors.py.md)"


def test_pages_are_made_for_what_is_linked_and_not_written() -> None:
    made = links.pages_linked_from({"index.md": "[a](../errors.py) [b](methods.md) [c](../configs)", "methods.md": ""})
    assert set(made) == {"source/errors.py.md", "source/configs/index.md"}
    assert (ROOT / "errors.py").read_text() in made["source/errors.py.md"]
    assert "`default.yaml`" in made["source/configs/index.md"]


def test_a_notebook_is_its_text_and_its_code() -> None:
    page = links.notebook_pages()["notebooks/own_method.md"]
    assert page.startswith("# A method of your own\n")
    assert "```python\n" in page
    assert '"cell_type"' not in page


def test_compressed_reports_are_unpacked() -> None:
    assert links.unpacked()["studies/vllm/report.html"].startswith(b"<!")


def test_a_binary_file_cannot_be_shown() -> None:
    picture = "(studies/phase/boundary.png)"
    assert links.pages_linked_from({"index.md": f"![p]{picture}"}) == {}  # of docs/: copied as it is
    (weights,) = (path.relative_to(ROOT) for path in ROOT.glob("bench/policies/tiny/**/walk.safetensors"))
    with pytest.raises(ValueError, match=r"walk\.safetensors: a link leads to a file"):
        links.pages_linked_from({"index.md": f"[w](../{weights})"})
