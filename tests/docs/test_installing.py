"""What the pages say of installing is what `pyproject.toml` says."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from vcpo_bench.errors import how_to_install

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED = {re.split(r"[<>=]", line)[0]: line for line in PROJECT["dependencies"]}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_readme_says_which_python_and_torch() -> None:
    least, below = re.fullmatch(r"torch>=([\d.]+),<([\d.]+)", NEEDED["torch"]).groups()  # type: ignore[union-attr]
    assert f"torch ({least} or newer, below {below})" in page("README.md")
    assert f"Python {PROJECT['requires-python'].removeprefix('>=')} or newer" in page("README.md")


def test_what_is_installed_without_torch_is_every_other_dependency() -> None:
    (listed,) = re.findall(r"^    pip install ((?:[a-z0-9]+ )+[a-z0-9]+)$", page("docs/python.md"), flags=re.M)
    assert set(listed.split()) == set(NEEDED) - {"torch", "safetensors"}


def test_the_gpu_kit_names_what_it_needs() -> None:
    (listed,) = re.findall(r"It\s+needs ([^;]+); not typst, matplotlib or vLLM\.", page("docs/gpu.md"))
    needed = set(re.findall(r"[a-z0-9]+", listed)) - {"and"}
    with_them = {"numpy", "pyyaml"}  # pandas and transformers bring these
    assert needed - {"transformers"} | with_them == set(NEEDED) - {"typst", "matplotlib", "pydantic"}
    carried = (ROOT / "tests" / "gpu" / "carried.py").read_text(encoding="utf-8")
    assert f'WANTED = "{NEEDED["pydantic"]}"' in carried


def test_a_log_is_diagnosed_where_torch_is_missing() -> None:
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.split('.')[0] in ('torch', 'safetensors'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import vcpo_bench as vb\n"
        "vb.load, vb.Monitor()\n"
        "print(vb.diagnose(sys.argv[1]).verdict)\n"
    )
    log = ROOT / "tests" / "analysis" / "logs" / "golden" / "verl_console.log"
    done = subprocess.run([sys.executable, "-c", code, str(log)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_page_installs_from_an_index_that_has_no_such_package(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "'vcpo-bench[" not in text
    assert set(re.findall(r"pip install '\.\[(\w+)\]'", text)) <= set(PROJECT["optional-dependencies"])


def test_no_message_installs_from_an_index_that_has_no_such_package() -> None:
    """Messages ask `errors.how_to_install`, and name an extra that there is."""
    sources = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in ("tests", "build")]
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in sources}
    assert not [str(path) for path, text in texts.items() if "vcpo-bench[" in text]
    named = {one for text in texts.values() for one in re.findall(r"how_to_install\('(\w+)'\)", text)}
    assert {"slurm", "ray", "tinker"} <= named <= set(PROJECT["optional-dependencies"])
    assert how_to_install("ray") == "pip install '.[ray]' in a checkout"
