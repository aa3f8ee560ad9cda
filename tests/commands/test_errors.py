"""How the app ends when a verb raises: one line and an exit code for what users cause, a traceback for our bugs."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from command_line import call, click_command
from typer.main import get_command
from typer.testing import CliRunner

from vcpo_bench.cli import OneLineErrors, app, refused_platform
from vcpo_bench.commands.support.verb_command import VerbCommand
from vcpo_bench.errors import DamagedResultError, UsageError


def ended(error: BaseException) -> tuple[int, str]:
    """Exit code and error output of a verb that raises `error`."""
    app = typer.Typer(cls=OneLineErrors, pretty_exceptions_enable=False)

    @app.command("fail")
    def fail() -> None:
        raise error

    app.callback()(lambda: None)
    result = CliRunner().invoke(app, ["fail"], catch_exceptions=False)
    return result.exit_code, result.stderr


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (UsageError("--lr 0: choose a positive number"), "error: --lr 0: choose a positive number\n"),
        (DamagedResultError("cell.json cannot be read"), "error: cell.json cannot be read\n"),
        (
            PermissionError(errno.EACCES, "Permission denied", "page.html"),
            "error: page.html: Permission denied; choose another file or folder\n",
        ),
    ],
)
def test_what_a_user_causes_is_one_line_and_2(error: Exception, line: str) -> None:
    assert ended(error) == (2, line)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_named_with_the_folder_the_verb_writes_to(error: Exception, tmp_path: Path) -> None:
    app = typer.Typer(cls=OneLineErrors, pretty_exceptions_enable=False)

    @app.command("fail", cls=VerbCommand)
    def fail(folder: Path, out: Path) -> None:
        raise error

    app.callback()(lambda: None)
    result = CliRunner().invoke(app, ["fail", str(tmp_path / "read"), str(tmp_path / "written" / "page.html")])
    assert result.exit_code == 2
    assert result.stderr == f"error: {tmp_path}: the disk is full; free space there, then run the same command again\n"


@pytest.mark.parametrize("error", [ValueError("shape"), RuntimeError("bug"), OSError("from a library")])
def test_a_bug_keeps_its_traceback(error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        ended(error)


def test_a_reader_that_left_is_no_misuse() -> None:
    assert ended(BrokenPipeError(errno.EPIPE, "Broken pipe"))[0] == 1


@pytest.mark.parametrize("arguments", [("run", "--help"), ("ls", "methods")])
def test_a_pipe_that_was_closed_ends_the_command_quietly(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "vcpo_bench", *arguments]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=300)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.fixture
def unwritable(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("errors") / "file"
    file.touch()
    return str(file / "tables")


def test_a_folder_that_cannot_be_made_is_one_line(unwritable: str, finished: object) -> None:
    result = call("results", "export", str(finished), "--out", unwritable)
    assert result.exit_code == 2
    file = unwritable.removesuffix("/tables")
    assert result.stderr == f"error: --out {unwritable}: {file} is a file; choose another folder\n"


@pytest.mark.parametrize(
    "arguments",
    [("nothing",), ("run", "--nothing"), ("lab", "plan", "--steps", "0"), ("lab", "fork"), ("results", "--nothing")],
)
def test_a_verb_or_option_there_is_not_exits_with_2(arguments: tuple[str, ...]) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_a_plug_in_cannot_end_the_program_in_success() -> None:
    code, line = ended(SystemExit(0))
    assert code == 2
    assert line == "error: a plug-in ended the program (sys.exit(0)); nothing after that was done\n"


def test_a_shell_completes_a_line_that_has_a_flag_twice() -> None:
    context = get_command(app).make_context("vcpo-bench", ["run"], resilient_parsing=True)
    command = click_command("run")
    command.make_context("run", ["--lr", "1", "--lr", "2"], parent=context, resilient_parsing=True)


def test_windows_is_refused_and_pointed_to_wsl() -> None:
    assert "WSL 2" in refused_platform("win32")
    assert refused_platform("linux") == refused_platform("darwin") == ""


def test_a_terminal_without_unicode_gets_escapes() -> None:
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    code = "import sys; sys.argv = ['vcpo-bench', 'ls', 'presets']; from vcpo_bench.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=ascii_only, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert b"lr-sweep" in done.stdout
    assert done.stdout.isascii()
