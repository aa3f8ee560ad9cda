"""The house: the order of its rooms, read from the source. A room imports only rooms below it, without any circle.

Imports inside functions and under `TYPE_CHECKING` count like those at the top of a file.
"""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from import_graph import SourceFile, cycles, imported_names, read_package

import vcpo_bench

ROOT = Path(vcpo_bench.__file__).resolve().parent
REPOSITORY = Path(__file__).resolve().parents[1]
LONGEST_FILE = 300

OPEN_TO_ALL = {"", "errors", "files", "lazy_torch", "progress", "records", "naming"}
"""What every room may import: version, errors, writing of files, lazy torch, schema of tables, grammar of names."""

WINGS = {
    "errors": set(),
    "files": {"errors"},
    "interrupts": set(),
    "lazy_torch": set(),
    "progress": set(),
    "records": {"errors", "files"},
    "naming": {"errors"},
    "configs": set(),
    "methods": OPEN_TO_ALL,
    "bench": OPEN_TO_ALL | {"methods"},
    "analysis": OPEN_TO_ALL,
    "adapters": OPEN_TO_ALL | {"methods", "bench", "analysis"},
    "reports": OPEN_TO_ALL | {"analysis"},
    "api": OPEN_TO_ALL | {"bench", "analysis", "reports"},
    "commands": OPEN_TO_ALL | {"configs", "methods", "bench", "analysis", "adapters", "reports", "interrupts"},
    "cli": OPEN_TO_ALL | {"configs", "methods", "bench", "analysis", "reports", "commands"},
    "__main__": {"cli", "interrupts"},
    "": set(),
}
"""Folders and files at the root, and which others each may import."""

GROUND = "(files)"
"""The files that lie in a wing itself and are not named in the order."""
FRONT = "(front door)"
"""The `__init__.py` of a wing: what it offers to others, above everything in it."""

ADAPTERS_MAY_USE = ("bench.score_norms", "analysis.monitoring")
"""All that adapters import of wings they may not know as a whole: other trainers are not ours to run or to judge."""
CELLS_OF_OTHERS = ("adapters.trainers.", "adapters.trl.cell.", "adapters.verl.cell.")
"""What makes a cell of a run of another trainer, and so knows both."""

ORDER: dict[str, list[set[str]]] = {
    "methods": [{"core"}, {"parts"}, {"assembly"}, {GROUND}, {FRONT}],
    "bench": [
        {GROUND},
        {"tasks"},
        {"regimes"},
        {"score_norms"},
        {"policies"},
        {"samplers", "optimizers", "trainers"},
        {"cells"},
        {"feeding"},
        {"training"},
        {"stack"},
        {"running", "replay", "machine", "outside"},
        {FRONT},
    ],
    "bench.running": [{GROUND}, {"cell"}, {"pool"}, {"schedulers"}, {"run_grid"}, {"export"}, {FRONT}],
    "bench.running.schedulers": [{"loop"}, {"catalog"}, {"scheduled"}, {GROUND}, {FRONT}],
    "analysis": [
        {GROUND},
        {"advice", "diagnostics"},
        {"monitoring"},
        {"logs"},
        {"log_alarms"},
        {"collapse"},
        {"diagnosis"},
        {"watching"},
        {"comparison"},
        {"prediction"},
        {"calibrating"},
        {"commands"},
        {FRONT},
    ],
    "adapters": [{GROUND}, {"trl", "verl", "prime_rl", "slime", "skyrl"}, {"recipes", "trainers"}, {FRONT}],
    "reports": [
        {GROUND},
        {"terminal"},
        {"plots"},
        {"sections"},
        {"report"},
        {"writers"},
        {"diff", "trace", "live"},
        {FRONT},
    ],
}
"""The rooms of each wing, or room, from the bottom; rooms of one line do not know each other."""

ALONE = {("reports", "terminal")}
"""Rooms that import no other room of their wing, and that none of them imports."""


@cache
def files() -> dict[str, SourceFile]:
    """Every file of the package by name. Read by the one worker that runs this file, not by all that collect it."""
    return read_package(ROOT)


def wing_of(name: str) -> str:
    return name.partition(".")[0]


def is_in(wing: str, name: str) -> bool:
    """Whether a file lies in a wing or in one of its rooms."""
    return f"{name}.".startswith(f"{wing}.")


def room_of(wing: str, name: str) -> str:
    """The room of a wing in which a file of it lies."""
    if name == wing:
        return FRONT
    first = name.removeprefix(f"{wing}.").partition(".")[0]
    return first if any(first in line for line in ORDER[wing]) else GROUND


def height(wing: str, room: str) -> int:
    return next(number for number, line in enumerate(ORDER[wing]) if room in line)


def imports_between(wing: str) -> list[tuple[SourceFile, SourceFile]]:
    own = [file for file in files().values() if is_in(wing, file.name)]
    assert own
    return [(file, files()[name]) for file in own for name in sorted(file.imports) if is_in(wing, name)]


@pytest.mark.parametrize("wing", WINGS)
def test_a_wing_imports_only_what_it_may(wing: str) -> None:
    wrong = [
        f"{file.name} imports {name}"
        for file in files().values()
        if wing_of(file.name) == wing
        for name in sorted(file.imports)
        if wing_of(name) not in WINGS[wing] | {wing}
    ]
    assert not wrong, "\n".join(wrong)


def test_every_folder_and_file_at_the_root_has_its_place() -> None:
    assert {wing_of(name) for name in files()} <= WINGS.keys()


@pytest.mark.parametrize("wing", ORDER)
def test_every_room_has_its_place(wing: str) -> None:
    here = {path.name for path in ROOT.joinpath(*wing.split(".")).iterdir() if any(path.glob("*.py"))}
    assert here <= set.union(*ORDER[wing])


def test_adapters_use_only_what_they_may() -> None:
    wrong = [
        f"{file.name} imports {name}"
        for file in files().values()
        if wing_of(file.name) == "adapters" and not file.name.startswith(CELLS_OF_OTHERS)
        for name in sorted(file.imports)
        if wing_of(name) in ("bench", "analysis") and not name.startswith(ADAPTERS_MAY_USE)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("wing", ORDER)
def test_a_room_imports_only_rooms_below_it(wing: str) -> None:
    wrong = []
    for file, target in imports_between(wing):
        here, there = room_of(wing, file.name), room_of(wing, target.name)
        alone = here != GROUND and {(wing, here), (wing, there)} & ALONE and there != GROUND
        if here != there and (alone or height(wing, here) <= height(wing, there)):
            wrong.append(f"{file.name} ({here}) imports {target.name} ({there})")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("wing", ORDER)
def test_rooms_form_no_circle(wing: str) -> None:
    graph: dict[str, set[str]] = {}
    for file, target in imports_between(wing):
        graph.setdefault(room_of(wing, file.name), set()).add(room_of(wing, target.name))
    assert not cycles(graph)


def test_files_form_no_circle() -> None:
    assert not cycles({name: file.imports for name, file in files().items()})


@pytest.mark.parametrize("wing", ["analysis", "reports", "naming", "records", "files", "errors", "configs"])
def test_a_laptop_without_torch_reads_results(wing: str) -> None:
    wrong = {file.name for file in files().values() if wing_of(file.name) == wing and _needs_torch(file)}
    assert not wrong


def _needs_torch(file: SourceFile) -> bool:
    return bool(file.libraries & {"torch", "safetensors"})


@pytest.mark.parametrize(("wing", "libraries"), [("methods", {"torch"}), ("naming", set())])
def test_libraries_of(wing: str, libraries: set[str]) -> None:
    for file in files().values():
        if wing_of(file.name) == wing:
            assert file.libraries <= libraries | set(sys.stdlib_module_names), file.name


def test_nothing_generic_is_importable_from_elsewhere(tmp_path: Path) -> None:
    names = [name for name in {wing_of(name) for name in files()} | {"tests", "tools"} if not name.startswith("_")]
    code = f"import importlib.util as u; assert not [n for n in {sorted(filter(None, names))} if u.find_spec(n)]"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, timeout=60)


def test_no_file_is_too_long() -> None:
    paths = [path for path in REPOSITORY.rglob("*.py") if _is_ours(path)]
    assert len(paths) > len(files())
    lengths = {str(path.relative_to(REPOSITORY)): len(path.read_text().splitlines()) for path in paths}
    assert not {name: length for name, length in lengths.items() if length > LONGEST_FILE}


def _is_ours(path: Path) -> bool:
    """Whether a file is of this repository, not of a virtual environment or a build inside it."""
    parts = path.relative_to(REPOSITORY).parts
    above = [REPOSITORY.joinpath(*parts[:depth]) for depth in range(1, len(parts))]
    return not {"build", "dist", "results", ".types", ".git", ".nox"} & set(parts) and not any(
        (folder / "pyvenv.cfg").exists() for folder in above
    )


def test_imports_are_found_wherever_they_hide() -> None:
    source = (
        "import a.b\nfrom c import d, e\nif TYPE_CHECKING:\n    from f.g import h\n"
        "def load(name):\n    from i import j\n    importlib.import_module('k.l')\n    import_module(name)\n"
    )
    assert sorted(imported_names(ast.parse(source))) == ["a.b", "c.d", "c.e", "f.g.h", "i.j", "k.l"]
    with pytest.raises(ValueError, match="relative import on line 1"):
        list(imported_names(ast.parse("from . import x")))


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "x": {"y"}, "y": {"x"}}
    assert cycles(graph) == [["a", "b", "c"], ["x", "y"]]
    assert not cycles({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()})
