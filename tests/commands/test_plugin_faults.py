"""Mistakes inside plug-in files: one line that says where, and a listing that goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import call, call_here, refused, run_with

from vcpo_bench.commands.support.kinds.find import load_catalogs
from vcpo_bench.naming.catalog import CATALOGS

METHOD = """
from dataclasses import dataclass
from vcpo_bench.methods import RatioMethod, Terms

@dataclass(frozen=True, kw_only=True)
class Own(RatioMethod):
    name = "own-fault"
    summary = "x"
    {field}

    def terms(self, ev):
        {body}
"""
WEIGHT = "return Terms(weight=ev.ratio())"


@pytest.fixture(autouse=True)
def _forget_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("COLUMNS", raising=False)
    load_catalogs()
    yield
    for catalog in CATALOGS.values():
        catalog.forget()


def method(folder: Path, body: str = WEIGHT, field: str = "") -> Path:
    file = folder / "own.py"
    file.write_text(METHOD.format(body=body, field=field))
    return file


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ("return {}['nope']", "", "line 12: KeyError: 'nope'"),
        ("self.x = 1", "", "line 12: FrozenInstanceError: cannot assign to field 'x'"),
        ("open('/no/such/file')", "", "line 12: FileNotFoundError"),
    ],
)
def test_a_fault_inside_a_plugin_is_one_line_that_says_where(body: str, field: str, said: str, tmp_path: Path) -> None:
    file = method(tmp_path, body, field)
    assert f"plug-in {file}, {said}" in refused("show", "method", "own-fault", "--plugin", file)


def test_a_check_of_its_own_is_one_line(tmp_path: Path) -> None:
    file = method(tmp_path, field="def __post_init__(self):\n        raise ValueError('too small')")
    said = f"plug-in {file}, line 10: ValueError: too small"
    assert said in refused("show", "method", "own-fault", "--plugin", file)


@pytest.mark.parametrize("quiet", [("--quiet",), ()])
def test_a_cell_that_failed_says_where_once(quiet: tuple[str, ...], tmp_path: Path) -> None:
    file = method(tmp_path, "return {}['nope']")
    cells = ("--no-controls", "--plugin", str(file), "--out", str(tmp_path / "out"))
    done = call_here(*run_with(methods="own-fault"), *cells, *quiet)
    assert done.exit_code == 1, done.output
    (line,) = [line for line in done.output.splitlines() if "KeyError" in line]
    assert line.startswith("failed: own-fault lag 1 seed 0" if quiet else "error     own-fault lag 1 seed 0")
    assert line.endswith("plug-in .../own.py, line 12: KeyError: 'nope'")


@pytest.mark.parametrize("kind", ["methods", "parts"])
def test_a_listing_shows_it_as_broken_and_goes_on(kind: str, tmp_path: Path) -> None:
    file = method(tmp_path, "return {}['nope']")
    shown = call("ls", kind, "--plugin", file)
    assert shown.exit_code == 0, shown.output
    broken = [line for line in shown.output.splitlines() if "BROKEN" in line]
    assert [line.startswith("own-fault ") and "line 12: KeyError: 'nope'" in line for line in broken] == [True] * (
        kind == "methods"
    )
    assert len(shown.output.splitlines()) > 20


def test_a_coefficient_that_is_not_a_number_is_said_where_it_would_be_drawn(tmp_path: Path) -> None:
    file = method(tmp_path, "return Terms(weight=ev.ratio() * float('nan'))")
    assert "weight is not a number (NaN)" in refused("show", "method", "own-fault", "--plugin", file)


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("cap: float", "has no default for cap; write cap: float = number(1.0)"),
        ("own_needs = lambda self: frozenset({'entropi'})", "needs 'entropi', which no batch has; use some of"),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_loaded(field: str, said: str, tmp_path: Path) -> None:
    assert f"the method 'own-fault' {said}" in refused("ls", "methods", "--plugin", method(tmp_path, field=field))


def test_needs_may_be_any_collection_of_fields(tmp_path: Path) -> None:
    file = method(tmp_path, field="own_needs = lambda self: ('version', 'entropy')")
    assert "own-fault" in call("ls", "methods", "--plugin", file).stdout


def written(kind: str, folder: Path, old: str, new: str) -> Path:
    """The plug-in of `new KIND own-fault`, with one line changed."""
    file = Path(call("new", kind, "own-fault", "--folder", folder).stdout.split()[0])
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    return file


def test_a_task_that_breaks_a_promise_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    file = written("task", tmp_path, "return integers(draws, 10)", "return integers(draws, 10)[:, :1]")
    said = "task own-fault: prompts are int64 [4, 1]; return int64 [4, 4] for 4 rows"
    flags = ("--task", "own-fault", "--plugin", file)
    assert said in refused("run", "--methods", "clip", *flags, "--out", tmp_path / "out")
    assert said in refused("lab", "warmup", *flags, "--out", tmp_path / "start.safetensors")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "return [Order(batch)",
            "return [][:0] and [Order(batch)",
            "update 0 consumes batches [0], which are not held",
        ),
        ("return [Order(batch)", "[Order(batch)", "update 0: admit returned NoneType, not orders"),
        ("return OwnFaultSchedule", "OwnFaultSchedule", "build returned NoneType, not a StalenessSchedule"),
    ],
)
def test_a_regime_that_breaks_a_promise_is_refused_before_anything_is_trained(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    file = written("regime", tmp_path, old, new)
    flags = ("--regime", "own-fault", "--staleness", "3", "--plugin", file)
    assert said in refused("lab", "plan", *flags)
    assert said in refused("run", "--methods", "clip", *flags, "--task", "walk-eos", "--out", tmp_path / "out")


def test_a_class_without_a_summary_says_so(tmp_path: Path) -> None:
    file = method(tmp_path, WEIGHT)
    file.write_text(file.read_text().replace('summary = "x"', ""))
    assert call("show", "method", "own-fault", "--plugin", file).output.startswith("own-fault: (it has no summary)")
    assert "(it has no summary)" in call("ls", "methods", "--plugin", file).output


@pytest.mark.parametrize(
    ("trainer", "said"),
    [
        (
            "trl",
            '  from vcpo_bench.methods import load_plugin\n  load_plugin("{file}")\n  from vcpo_bench.adapters.trl',
        ),
        (
            "verl",
            "  # the adapter does not load {file}: announce it in a package of yours as an entry point",
        ),
    ],
)
def test_a_trainer_is_told_how_to_load_it(trainer: str, said: str, tmp_path: Path) -> None:
    file = method(tmp_path)
    shown = call("show", "method", "own-fault", "--in", trainer, "--plugin", file)
    assert said.format(file=file) in shown.output
