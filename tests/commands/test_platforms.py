"""What a terminal or a platform cannot do ends in one line or in plain text, never in a traceback."""

import os
import subprocess
import sys

from vcpo_bench.cli import refused_platform


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
