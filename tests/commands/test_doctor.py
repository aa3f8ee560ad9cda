"""`vcpo-bench doctor`; what it finds is tested in tests/bench/machine."""

import json

import pytest
import torch
from command_line import call

import vcpo_bench
from vcpo_bench.bench.machine import gpu_checks
from vcpo_bench.bench.machine.doctor import DoctorLine


def test_every_line_has_a_status() -> None:
    shown = call("doctor")
    assert shown.exit_code == 0, shown.output
    statuses = [line.split()[0] for line in shown.stdout.splitlines()]
    assert set(statuses) <= {"ok", "absent", "wrong"}
    assert f"vcpo-bench: {vcpo_bench.__version__}" in shown.stdout
    assert torch.__version__ in shown.stdout


def test_a_failed_check_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = DoctorLine("copies", "failed", "2 of 3 differ")
    monkeypatch.setattr(gpu_checks, "gpu_checks", lambda: [failed])
    shown = call("doctor", "--gpu")
    assert shown.exit_code == 1
    assert "failed   copies: 2 of 3 differ\n" in shown.stdout


def test_as_json_it_says_the_same() -> None:
    lines = [f"{one['status']:8} {one['name']}: {one['text']}" for one in json.loads(call("doctor", "--json").stdout)]
    assert lines == call("doctor").stdout.splitlines()
