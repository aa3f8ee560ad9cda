"""What the pages say of installing is what `pyproject.toml` says."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED = {re.split(r"[<>=]", line)[0]: line for line in PROJECT["dependencies"]}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_pages_say_which_python_and_torch() -> None:
    least, below = re.fullmatch(r"torch>=([\d.]+),<([\d.]+)", NEEDED["torch"]).groups()  # type: ignore[union-attr]
    assert f"torch ({least} or newer, below {below})" in page("docs/platforms.md")
    for name in ("README.md", "docs/platforms.md"):
        assert f"Python {PROJECT['requires-python'].removeprefix('>=')} or newer" in page(name)


def test_what_is_installed_without_torch_is_every_other_dependency() -> None:
    (listed,) = re.findall(r"^    pip install ((?:[a-z0-9]+ )+[a-z0-9]+)$", page("docs/python.md"), flags=re.M)
    assert set(listed.split()) == set(NEEDED) - {"torch", "safetensors"}


def test_a_lent_machine_needs_every_dependency_but_those_named() -> None:
    """`.ci/integrations gpu_day` runs the kit without the others."""
    text = page("docs/gpu.md")
    ((there, absent),) = re.findall(r"needs (torch[^.]*?) there,\s+but\s+not ([^.]*)\.", text)
    words = [set(re.findall(r"[a-z0-9]+", part)) - {"and", "or"} for part in (there, absent.replace("vLLM", ""))]
    assert words[0] - {"transformers"} == set(NEEDED) - words[1]
    assert words[1] == {"matplotlib", "typst"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_page_installs_from_an_index_that_has_no_such_package(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.name == "platforms.md":  # explains what messages of an installed package say
        text = text.replace("`pip install 'vcpo-bench[hf]'`: pip then adds", "")
    assert "'vcpo-bench[" not in text
    assert set(re.findall(r"pip install '\.\[(\w+)\]'", text)) <= set(PROJECT["optional-dependencies"])
