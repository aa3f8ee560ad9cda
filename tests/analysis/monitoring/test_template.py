"""A signal written by `new signal` works as it stands."""

import subprocess
import sys
from pathlib import Path

import pytest

from vcpo_bench.analysis.monitoring.signal import SIGNALS
from vcpo_bench.naming.errors import PluginError
from vcpo_bench.naming.template import write_new


def test_the_template_passes_its_own_test(tmp_path: Path) -> None:
    files = write_new(SIGNALS, "clipped_kl", tmp_path / "mine")
    assert [file.name for file in files] == ["clipped_kl.py", "test_clipped_kl.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(files[1])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout


def test_names_are_joined_as_those_of_columns(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="joined by '_', such as my_signal"):
        write_new(SIGNALS, "clipped-kl", tmp_path)
