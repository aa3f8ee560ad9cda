"""Where pydantic-monty is missing, one line says what to install; the integration `test_sandbox.py` has the rest."""

import importlib

import pytest

from vcpo_bench.bench.machine import doctor
from vcpo_bench.bench.sandbox import PythonSandbox
from vcpo_bench.bench.sandbox.walls import NONE, Wall
from vcpo_bench.bench.tasks import TASKS
from vcpo_bench.errors import UsageError


def test_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    calc = TASKS.class_of("calc")  # the catalog imports its folder
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(UsageError, match=r"pip install '\.\[tools\]' in a checkout"):
        PythonSandbox(NONE)
    with pytest.raises(UsageError, match=r"pip install '\.\[tools\]' in a checkout"):
        calc.check_installed()


@pytest.mark.parametrize(("version", "status"), [("", "absent"), ("1.4.0", "ok")])
def test_doctor_says_what_isolates(monkeypatch: pytest.MonkeyPatch, version: str, status: str) -> None:
    monkeypatch.setattr(doctor, "_version", lambda package: version)
    for wall, said in ((NONE, "the interpreter alone isolates"), (Wall("brick", "own network"), "brick, own network")):
        monkeypatch.setattr(doctor, "strongest", lambda wall=wall: wall)
        (line,) = [line for line in doctor.examine() if line.name == "sandbox"]
        assert line.status == status
        assert said in line.text
