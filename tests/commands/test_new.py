"""`vcpo-bench new`, and what it writes: files that pass as written, for every kind that has a template."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import RUN, call, call_here, refused
from patience import within

from vcpo_bench.commands.support.kinds.find import find_kind, kinds
from vcpo_bench.naming.catalog import CATALOGS

BEGUN = {kind: f"written-{kind}" for kind in ("method", "task", "regime", "signal")}
"""Names that nobody gives to something of his own, as the `my-method` of the docs."""


@pytest.fixture(autouse=True)
def _forget_plugins() -> Iterator[None]:
    yield
    for catalog in CATALOGS.values():
        catalog.forget()


def begin(kind: str, folder: Path) -> Path:
    """The plug-in file of a new `kind`."""
    result = call("new", kind, BEGUN[kind], "--folder", str(folder))
    assert result.exit_code == 0, result.output
    plugin, test = map(Path, result.stdout.split())
    assert test == plugin.with_name(f"test_{plugin.name}")
    return plugin


@pytest.mark.parametrize("kinds", [("method", "regime", "signal"), pytest.param(("task",), marks=pytest.mark.slow)])
def test_the_generated_tests_pass_as_written(kinds: tuple[str, ...], tmp_path: Path) -> None:
    """Of a task it trains a policy."""
    for kind in kinds:
        begin(kind, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=within(300),
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.parametrize("kind", BEGUN)
def test_what_is_written_is_listed_and_shown_with_plugin_only(kind: str, tmp_path: Path) -> None:
    plugin = begin(kind, tmp_path)
    assert BEGUN[kind] not in call("ls", kind).output
    assert f"unknown {kind}" in call("show", kind, BEGUN[kind]).stderr
    assert BEGUN[kind] in call("ls", kind, "--plugin", str(plugin)).output
    shown = call("show", kind, BEGUN[kind], "--plugin", str(plugin))
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith(f"{BEGUN[kind]}: ")


@pytest.mark.parametrize("kind", BEGUN)
def test_names_that_cannot_be_used_are_one_line(kind: str, tmp_path: Path) -> None:
    taken = find_kind(kind).listing().rows[0][0]
    begin(kind, tmp_path)
    for name, problem in ((BEGUN[kind], "exists"), (taken, "already"), ("No Name", "lower-case")):
        assert problem in refused("new", kind, name, "--folder", str(tmp_path))


@pytest.mark.parametrize("kind", [kind.singular for kind in kinds() if kind.singular not in BEGUN])
def test_a_kind_without_a_template_is_one_line(kind: str, tmp_path: Path) -> None:
    result = call("new", kind, "mine", "--folder", str(tmp_path))
    assert result.exit_code == 2
    begun = sorted(BEGUN)
    said = result.stderr.partition("there is no template for it; write one of: ")[2]
    assert sorted(said.strip().split(", ")) == begun
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_kinds_with_a_template_are_named_before_anything_is_loaded(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "vcpo_bench", "new", "part", "mine"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=within(60))
    assert done.returncode == 2
    assert done.stderr.endswith("write one of: method, task, regime, signal\n")


def test_a_new_method_trains_and_an_edited_one_is_another(tmp_path: Path) -> None:
    plugin = begin("method", tmp_path / "mine")
    assert len(plugin.read_text().splitlines()) <= 30
    arguments = [*RUN, "--no-controls", "--plugin", str(plugin), "--out", str(tmp_path / "out")]
    arguments[arguments.index("clip")] = "written-method(cap=3)"
    done = call_here(*arguments)
    assert done.exit_code == 0, done.output
    assert "written-method(cap=3)" in done.output
    plugin.write_text(plugin.read_text() + "# edited\n")
    assert call_here(*arguments).exit_code == 0
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 2, "an edited plug-in is another method"


@pytest.mark.slow
def test_a_new_regime_trains_in_a_grid(tmp_path: Path) -> None:
    plugin = begin("regime", tmp_path / "mine")
    out = tmp_path / "out"
    done = call_here(*RUN, "--no-controls", "--plugin", str(plugin), "--regime", "written-regime", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "written-regime" in call("show", str(out), "--json").output
