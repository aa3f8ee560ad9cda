"""The arrows between the rooms, read from the source: who may import whom."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import vcpo_bench

ROOT = Path(vcpo_bench.__file__).parent
SHARED = {"records", "errors"}
ALLOWED = {
    "methods": set(),
    "bench": {"methods"} | SHARED,
    "analysis": SHARED,
    "reports": {"analysis"} | SHARED,
    "configs": SHARED,
}
FORBIDDEN_LIBRARIES = {"analysis": {"torch", "safetensors"}, "reports": {"torch", "safetensors"}}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("room", ALLOWED)
def test_room_imports_only_along_the_arrows(room: str) -> None:
    files = list((ROOT / room).rglob("*.py"))
    assert files
    for path in files:
        for name in imported(path):
            first, *rest = name.split(".")
            if first == "vcpo_bench" and rest:
                assert rest[0] in ALLOWED[room] | {room, "__version__"}, f"{path} imports {name}"
            assert first not in FORBIDDEN_LIBRARIES.get(room, set()), f"{path} imports {name}"


def test_methods_need_torch_only() -> None:
    third_party = set(sys.stdlib_module_names) | {"torch", "vcpo_bench", "__future__"}
    for path in (ROOT / "methods").rglob("*.py"):
        for name in imported(path):
            assert name.split(".")[0] in third_party, f"{path} imports {name}"


def test_analysis_and_reports_work_without_torch() -> None:
    code = (
        "import sys, pkgutil, importlib\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.split('.')[0] in ('torch', 'safetensors'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "import vcpo_bench.analysis, vcpo_bench.reports\n"
        "for room in (vcpo_bench.analysis, vcpo_bench.reports):\n"
        "    for m in pkgutil.walk_packages(room.__path__, room.__name__ + '.'): importlib.import_module(m.name)\n"
        "import vcpo_bench.cli\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_nothing_generic_is_importable_from_elsewhere(tmp_path: Path) -> None:
    names = (
        "bench",
        "methods",
        "analysis",
        "reports",
        "configs",
        "cli",
        "cli_results",
        "cli_warmup",
        "tests",
        "records",
        "errors",
    )
    code = f"import importlib.util as u; assert not [n for n in {names} if u.find_spec(n)]"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, timeout=60)


def test_no_file_is_too_long() -> None:
    rooms = [*ALLOWED, "."]
    for room in rooms:
        for path in (ROOT / room).glob("*.py") if room == "." else (ROOT / room).rglob("*.py"):
            assert len(path.read_text().splitlines()) <= 400, path
