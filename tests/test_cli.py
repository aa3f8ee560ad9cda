"""The command line as its users meet it: what works, and one clear line for what cannot."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner, Result

from vcpo_bench.cli import app

RUN = ["run", "--methods", "clip", "--staleness", "1", "--seeds", "1", "--steps", "4", "--prompts", "2"]
RUN += ["--responses", "4", "--task", "walk-eos", "--jobs", "1"]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cli") / "run"
    result = call(*RUN, "--out", str(out), "--save-config", str(out.parent / "saved.yaml"))
    assert result.exit_code == 0, result.output
    assert "clip" in result.output
    return out


def test_a_run_writes_every_cell_with_its_controls(finished: Path) -> None:
    cells = {path.name: json.loads((path / "cell.json").read_text()) for path in (finished / "cells").iterdir()}
    assert sorted((c["config"]["method"], c["config"]["staleness"], c["control"]) for c in cells.values()) == [
        ("clip", 1, False),
        ("reinforce", 0, True),
        ("reinforce", 1, True),
    ]
    assert {c["status"] for c in cells.values()} == {"completed"}
    assert all(c["steps_done"] == 4 and c["provenance"]["libraries"]["torch"] for c in cells.values())
    assert (finished / "scoreboard.csv").read_text().count("\n") >= 4


def test_running_again_runs_nothing(finished: Path) -> None:
    times = {path: path.stat().st_mtime_ns for path in (finished / "cells").rglob("*.parquet")}
    result = call(*RUN, "--out", str(finished))
    assert result.exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in (finished / "cells").rglob("*.parquet")} == times


def test_a_damaged_cell_is_named_set_aside_and_run_again(finished: Path) -> None:
    cell = next((finished / "cells").glob("*clip*"))
    steps = (cell / "evals.parquet").read_bytes()
    (cell / "cell.json").write_text("{")
    result = call(*RUN, "--out", str(finished))
    assert result.exit_code == 0
    assert f"{cell}: cell.json cannot be read" in result.output.replace("\n", "")
    assert (finished / "damaged" / f"{cell.name}-1" / "cell.json").read_text() == "{"
    assert json.loads((cell / "cell.json").read_text())["status"] == "completed"
    assert len((cell / "evals.parquet").read_bytes()) > len(steps) // 2


def test_show_and_json(finished: Path) -> None:
    shown = call("show", str(finished), "--json")
    assert shown.exit_code == 0
    board = json.loads(shown.stdout)
    assert {row["method"] for row in board} == {"clip", "reinforce"}


def test_the_saved_configuration_plans_the_same_cells_and_a_typed_flag_wins(finished: Path) -> None:
    saved = str(finished.parent / "saved.yaml")
    same = call("run", "--config", saved, "--dry-run")
    assert "3 cells, 0 to run" in same.output
    more = call("run", "--config", saved, "--dry-run", "--staleness", "1,2")
    assert "5 cells, 2 to run" in more.output, more.output


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    result = call(*RUN, "--out", str(tmp_path / "none"), "--dry-run")
    assert result.exit_code == 0
    assert "3 cells, 3 to run on 1 workers: about" in result.output
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--methods", "vcop"], "vcpo"),
        (["--methods", "clip(hihg=0.3)"], "high"),
        (["--methods", "clip(high=0.3"], ">>>"),
        (["--methods", "clip(high=two)"], "two"),
        (["--methods", ","], "--methods"),
        (["--methods", "clip(anchor=proximal)"], "proximal"),
        (["--task", "chian"], "chain"),
        (["--task", "chain(n=0)"], "n=0"),
        (["--staleness", "-1"], "-1"),
        (["--staleness", "1.5"], "1.5"),
        (["--staleness", "many"], "many"),
        (["--lr", "nan"], "nan"),
        (["--lr", "0"], "positive"),
        (["--lr", "inf"], "inf"),
        (["--seeds", "0"], "--seeds 0"),
        (["--steps", "0"], "--steps 0"),
        (["--prompts", "-3"], "-3"),
        (["--record", "all"], "diagnostics"),
        (["--config", "qick"], "quick"),
        (["--keep-checkpoints", "50"], "every=50"),
        (["--jobs", "-2"], "-2"),
        (["--staleness"], "--staleness"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(tmp_path: Path, flags: list[str], said: str) -> None:
    result = call("run", "--out", str(tmp_path / "out"), *flags)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output
    if result.stderr.startswith("error:"):
        assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("methods: [clip\n", "line 2, column 1"),
        ("metods: clip\n", "did you mean methods?"),
        ("steps: soon\n", "--steps"),
        ("- clip\n", "methods: vcpo,clip"),
    ],
)
def test_bad_configuration_files(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    result = call("run", "--config", str(path), "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_yaml_lists_make_axes(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("methods: [clip, tis]\nstaleness: [1, 2]\nseeds: [4]\nlr: [1e-4, 3e-4]\ncontrols: false\n")
    result = call("run", "--config", str(path), "--dry-run", "--steps", "5", "--prompts", "2")
    assert "8 cells" in result.output, result.output
    assert "seed 4" in result.output


def test_unwritable_and_foreign_folders(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").touch()
    assert "holds something else" in call(*RUN, "--out", str(tmp_path / "thesis")).stderr
    (tmp_path / "file").touch()
    result = call(*RUN, "--out", str(tmp_path / "file" / "deep"))
    assert result.exit_code == 2
    assert "cannot write there" in result.stderr


def test_a_lag_as_long_as_the_run_is_allowed_with_a_warning() -> None:
    result = call("run", "--staleness", "50", "--steps", "5", "--prompts", "2", "--seeds", "1", "--dry-run")
    assert result.exit_code == 0
    assert "every update consumes data of the start policy" in result.stderr


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_device_that_is_not_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    result = call("run", "--device", "cuda", "--out", str(tmp_path / "out"), *more)
    assert result.exit_code == 2
    assert result.stderr == "error: --device cuda: this machine has 0 CUDA devices; use cpu\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("what", "shown"), [("methods", "vespo"), ("tasks", "walk-eos"), ("presets", "quick")])
def test_lists(what: str, shown: str) -> None:
    assert shown in call("ls", what).output


def test_list_of_runs(finished: Path) -> None:
    shown = call("ls", "runs", "--results", str(finished.parent)).output
    assert "3 completed" in shown


def test_show_of_nothing_is_a_clear_error(tmp_path: Path) -> None:
    result = call("show", str(tmp_path))
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_a_method_is_described_with_its_curve() -> None:
    shown = call("show", "method", "vespo").output
    assert "k_pos=2" in shown
    assert "2602.10693" in shown
    assert shown.count("|") > 10
    missing = call("show", "method", "vspo")
    assert missing.exit_code == 2
    assert "vespo" in missing.stderr


def test_a_method_of_ones_own_is_written_tested_and_run(tmp_path: Path) -> None:
    assert call("new", "method", "my-method", "--folder", str(tmp_path / "mine")).exit_code == 0
    again = call("new", "method", "my-method", "--folder", str(tmp_path / "mine"))
    assert again.exit_code == 2
    plugin = tmp_path / "mine" / "my_method.py"
    assert len(plugin.read_text().splitlines()) <= 30
    arguments = [*RUN, "--no-controls", "--plugin", str(plugin), "--out", str(tmp_path / "out")]
    arguments[arguments.index("clip")] = "my-method(cap=3)"
    done = call(*arguments)
    assert done.exit_code == 0, done.output
    assert "my-method(cap=3)" in done.output
    plugin.write_text(plugin.read_text() + "# edited\n")
    assert call(*arguments).exit_code == 0
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 2, "an edited plug-in is another method"


def test_a_broken_plugin_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nothing_like_this\n")
    result = call("run", "--plugin", str(tmp_path / "broken.py"))
    assert result.exit_code == 2
    assert "nothing_like_this" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("kind", ["weights", "gradients", "collapse", "compare", "prediction"])
def test_analyzes(finished: Path, tmp_path: Path, kind: str) -> None:
    result = call("analyze", kind, str(finished), "--out", str(tmp_path / "tables"))
    assert result.exit_code == 0, result.output
    assert list((tmp_path / "tables").glob("*.csv"))


def test_report_diff_export_and_trace(finished: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert call("report", str(finished), "--html", str(page)).exit_code == 0
    assert page.read_text().startswith("<!")
    same = call("diff", str(finished), str(finished))
    assert same.exit_code == 0
    assert "Conclusions" in same.output
    assert call("export", str(finished), "--out", str(tmp_path / "csv")).exit_code == 0
    assert (tmp_path / "csv" / "steps.csv").exists()
    assert call("trace", "nothing", str(finished)).exit_code == 2


def test_a_failing_cell_is_a_row_the_rest_goes_on_and_the_exit_code_is_1(tmp_path: Path) -> None:
    assert call("new", "method", "bad-one", "--folder", str(tmp_path)).exit_code == 0
    plugin = tmp_path / "bad_one.py"
    text = plugin.read_text()
    plugin.write_text(text[: text.index("        return Terms")] + "        raise RuntimeError('wires crossed')\n")
    arguments = [*RUN, "--no-controls", "--plugin", str(plugin), "--out", str(tmp_path / "out")]
    arguments[arguments.index("clip")] = "bad-one,clip"
    done = call(*arguments)
    assert done.exit_code == 1, done.output
    cells = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("cells/*/cell.json")]
    assert {(c["config"]["method"], c["status"], c["reason"]) for c in cells} == {
        ("bad-one", "error", "RuntimeError: wires crossed"),
        ("clip", "completed", ""),
    }
    again = call(*arguments)  # a failed cell is tried again
    assert again.exit_code == 1, again.output
