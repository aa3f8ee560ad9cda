"""What people and machines hand to the command line by mistake: one line, exit code 2, and no work done before it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import RUN, call, refused, run_with

from vcpo_bench.bench.cells.preset_file import read_configuration

NINES = "9" * 5000
BOMB = "[&a [x, x, x], &b [*a, *a, *a], " + ", ".join(["*b"] * 500) + "]"


@pytest.fixture(scope="module")
def results(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_results(tmp_path_factory.mktemp("values") / "results", methods=("vcpo",), seeds=(0,), steps=20)


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("out: 2026-01-01", "--out does not take datetime.date"),
        ("steps: !!int abc", "invalid YAML"),
        ("lr: !!float abc", "invalid YAML"),
        ("task: !!timestamp foo", "invalid YAML"),
        (f"steps: {NINES}", "invalid YAML"),
        ("methods: " + "[" * 1200 + "]" * 1200, "nested too deeply"),
        (f"methods: {BOMB}", "--methods does not take [["),
        ("? [1, 2]\n: 3", "invalid YAML"),
        ("methods: {1: 2}", "--methods does not take"),
        ("!!python/object/apply:os.system [id]", "invalid YAML"),
        ("- methods", "must contain lines such as"),
        ("- clip\n", "methods: vcpo,clip"),
        ("methods: [clip\n", "line 2, column 1"),
        ("metods: clip\n", "did you mean methods"),
        ("steps: soon\n", "--steps"),
        ("methods: clip\nlr: 1e-3\nmethods: vcpo", "invalid YAML"),
    ],
)
def test_a_configuration_with_a_wrong_value(tmp_path: Path, yaml: str, said: str) -> None:
    file = tmp_path / "grid.yaml"
    file.write_text(yaml)
    assert said in refused("run", "--config", str(file), "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "a" * 5000),
        ("run", "--config", "a" * 5000),
        ("run", "--start", "a" * 5000, "--dry-run"),
        ("run", "--plugin", "a" * 5000),
        ("diagnose", "a" * 5000),
        ("lab", "fork", "a" * 5000, "--at", "1", "--methods", "clip", "--out", "out"),
        ("lab", "warmup", "--task", f"chain({NINES})"),
        ("run", "--staleness", NINES),
        ("run", "--lr", NINES),
        ("run", "--seeds", NINES),
        ("run", "--methods", "(" * 3000 + ")" * 3000),
        ("run", "--methods", "clip(" * 3000),
    ],
    ids=lambda arguments: "-".join(arguments)[:30],
)
def test_over_long_and_deep_input(arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(*arguments)
    assert not list(tmp_path.iterdir())


def test_the_home_folder_is_found_in_quotes_and_in_yaml(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(results.parent))
    monkeypatch.chdir(tmp_path)
    assert call("show", "~/results").exit_code == 0
    assert call("results", "export", "~/results", "--out=~/quoted").exit_code == 0
    assert (results.parent / "quoted" / "cells.csv").is_file()
    (results.parent / "home.yaml").write_text("out: ~/from-yaml\n")
    assert read_configuration("~/home.yaml", tmp_path, {"out": str}) == {"out": f"{results.parent}/from-yaml"}
    assert "~nobody-here" in refused("show", "~nobody-here/results")
    assert not list(tmp_path.iterdir())


def test_a_deleted_working_directory_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os; os.rmdir({str(gone)!r}); from vcpo_bench.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, "ls", "methods"], cwd=gone, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "error: the working directory was deleted; change to another folder\n"


def test_results_that_cannot_be_written_to_are_shown(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (results / "scoreboard.csv").unlink(missing_ok=True)
    (results / "scoreboard.csv").mkdir()
    shown = call("show", str(results))
    (results / "scoreboard.csv").rmdir()
    assert shown.exit_code == 0
    assert "vcpo" in shown.stdout
    assert shown.stderr.splitlines()[-1] == f"warning: {results}/scoreboard.csv could not be written (Is a directory)"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "--methods", "clip", "--methods", "vcpo"), "--methods: is given twice"),
        (("run", "--config", "quick", "--config", "default"), "--config: is given twice"),
        (("run", "--staleness", "5-1"), "the range ends below its start"),
        (("run", "--staleness", "0-20000"), "at most 1000 make sense"),
        (("run", "--lr", "1e-3..1e-4/5"), "the range ends below its start"),
        (("run", "--staleness", "0..8/3"), "equal ratios need a start above 0"),
        (("run", "--lr", "1e-4..1e-3"), "says no number of values; write /N after it, such as 1e-4..1e-3/5"),
        (("run", "--staleness", "1..16"), "says no number of values; write /N after it, such as 1..16/5"),
        (("lab", "audit-lag", "cell", "--alpha", "nan"), "--alpha nan: a probability"),
        (("lab", "audit-lag", "cell", "--alpha", "2"), "--alpha 2: a probability"),
        (("lab", "mismatch", "--lr", "nan"), "--lr 'nan': a learning rate"),
        (("lab", "mismatch", "--lr", "-1"), "--lr '-1.0': a learning rate"),
        (("diagnose", "run.jsonl", "--htlm", "page.html"), "no such option: --htlm"),
        (("run", "--cells"), "--cells lists what --dry-run counts; add --dry-run"),
        (("run", "--dry-run", "--out", os.fsdecode(b"b\xe9d/out")), "the name is not UTF-8"),
        (("--foo",), "error: no such option: --foo; see vcpo-bench --help"),
        (("lab", "--foo"), "error: no such option: --foo; see vcpo-bench lab --help"),
        (("advise",), "missing option '--lag'; see"),
        (("show", "vpco"), "show method vpco"),
        (("results", "cite", "results/none"), "there is no such folder"),
        (("run", "--plugin", "none.py"), "--plugin none.py: there is no such file"),
        (("new", "component", "mine"), "component"),
        (("new", "foo", "mine"), "known: method, regime, signal, task"),
        (("lab", "plan", "--staleness", "1000000000", "--steps", "10"), "ask for at most a million"),
        (("lab", "warmup", "--task", "chain", "--out", "."), "is a folder; give the name of a file"),
        (("lab", "probe", "cell", "--at", "1", "--out", "x.foo"), "ends with .parquet or .csv"),
    ],
    ids=lambda each: " ".join(each)[:40] if isinstance(each, tuple) else "",
)
def test_a_wrong_value_is_named(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused(*arguments)
    assert not list(tmp_path.iterdir())


def test_flags_that_may_repeat_do(results: Path) -> None:
    twice = ("--fail-if", "total > 9", "--fail-if", "final_reward < 0", "--json", "--json")
    assert call("show", str(results), *twice).exit_code == 0


def test_a_run_into_a_file_is_refused_before_it_measures(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = call(*RUN, "--out", str(tmp_path / "file"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is a file; choose another folder" in result.stderr


@pytest.mark.parametrize(
    ("verb", "option"),
    [
        (("report", "RESULTS"), "--pdf"),
        (("report", "RESULTS"), "--html"),
        (("results", "diff", "RESULTS", "RESULTS"), "--html"),
        (("diagnose", "RESULTS"), "--html"),
        (("results", "export", "RESULTS"), "--out"),
        (("lab", "analyze", "collapse", "RESULTS"), "--out"),
        (("lab", "probe", "RESULTS", "--at", "1"), "--out"),
        (("lab", "warmup", "--task", "chain"), "--out"),
    ],
)
def test_where_a_verb_writes_is_checked_before_it_works(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...], option: str
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("worked first")

    monkeypatch.setattr("vcpo_bench.analysis.results.read_cells", never)
    (tmp_path / "file").touch()
    target = tmp_path / "file" / "deep" / "target"
    arguments = [str(results) if one == "RESULTS" else one for one in verb]
    assert str(tmp_path / "file") in refused(*arguments, option, str(target))


def test_figures_without_room_are_refused_before_the_page_is_built(results: Path, tmp_path: Path) -> None:
    (tmp_path / "icml").touch()
    assert "icml is a file" in refused("report", str(results), "--html", str(tmp_path / "r.html"), "--figures", "icml")
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize(
    ("flags", "package"),
    [((*run_with(task="arithmetic"), "--model", "m"), "transformers"), ((*RUN, "--report-to", "wandb"), "wandb")],
)
def test_a_missing_extra_is_refused_before_the_first_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], package: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("vcpo_bench.commands.support.extras.find_spec", lambda name: None)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}")
    assert f"the package {package} is not installed; pip install" in refused(*flags, "--out", "out")
    assert not (tmp_path / "out").exists()
