"""Recorded errors: no absolute path survives, and nothing else changes."""

import pytest

from vcpo_bench.bench.cells.error_text import without_paths


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('  File "/home/ann lee/vcpo_bench/bench/a.py", line 3', '  File "vcpo_bench/bench/a.py", line 3'),
        ('File "/opt/v/lib/python3.11/site-packages/torch/nn/a.py"', 'File "torch/nn/a.py"'),
        ('File "/usr/lib/python3.11/json/decoder.py", line 1', 'File ".../decoder.py", line 1'),
        ("OSError: [Errno 5] bad: '/mnt/secret/x.bin'", "OSError: [Errno 5] bad: '.../x.bin'"),
        ("--out /home/ann/runs: cannot write", "--out .../runs: cannot write"),
        ("a=/home/ann/x, b=(/srv/y/z)", "a=.../x, b=(.../z)"),
        ("unbalanced '/home/ann/x", "unbalanced '.../x"),
        ("http://host:8000/v1/models and ~/x/y and a/b/c", "http://host:8000/v1/models and ~/x/y and a/b/c"),
        ("6 / 3 = 2, and/or, /, //", "6 / 3 = 2, and/or, /, //"),
    ],
)
def test_absolute_paths_are_cut(text: str, expected: str) -> None:
    assert without_paths(text) == expected


def test_a_home_with_a_blank_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann lee")
    assert without_paths("--out /home/ann lee/runs/x: full") == "--out .../x: full"
