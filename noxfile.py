"""Entry points of development: `nox -l` lists them, `nox -s NAME` runs one, arguments follow after `--`."""

import shutil
from pathlib import Path

import nox

ROOT = Path(__file__).parent
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
nox.options.sessions = ["tests", "lint", "types"]


@nox.session
def tests(session: nox.Session) -> None:
    """The README's test line; arguments go to pytest."""
    session.install(".[test]")
    session.run("pytest", *(session.posargs or ["-n", "auto"]), env=ONE_THREAD)


@nox.session
def slow(session: nox.Session) -> None:
    """The slow tests, which .ci/run adds to the others; arguments go to pytest."""
    session.install(".[test]")
    session.run("pytest", "-m", "slow", *(session.posargs or ["-n", "auto"]), env=ONE_THREAD)


@nox.session
def nightly(session: nox.Session) -> None:
    """The long attacks: 500 killed cells, 60 killed grids, 60 interrupts, long forms of other tests."""
    session.install(".[test]")
    more = {"HARDENING": "long", "FAULTS": "500", "KILLS": "60", "INTERRUPTS": "60"}
    attacks = ["tests/hardening", "tests/bench/running", "tests/bench/stack", "tests/test_interrupts.py"]
    session.run("pytest", "-m", "slow or not slow", *(session.posargs or attacks), env=ONE_THREAD | more)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and format, by ruff."""
    session.install("ruff>=0.9")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Types, by mypy; `.ci/integrations pyright` asks Pyright."""
    session.install(".[test]")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation site, in build/site; `nox -s docs -- serve` shows it while you write."""
    session.install(".[docs]")
    session.run("mkdocs", *(session.posargs or ["build", "--strict"]))


@nox.session
def mutants(session: nox.Session) -> None:
    """Changes to a module that its tests miss, by mutmut: `nox -s mutants -- files/plain_yaml.py tests/files`."""
    session.install(".[test]", "mutmut>=3.8,<4")
    module, *tests = session.posargs
    folder = Path(session.create_tmp())  # mutmut names modules by their path, and here no folder is called vcpo_bench
    shutil.rmtree(folder / "mutants", ignore_errors=True)
    for name, target in (("vcpo_bench", ".types/vcpo_bench"), ("tests", "tests"), ("pyproject.toml", "pyproject.toml")):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(ROOT / target)
    settings = ("[mutmut]", f"source_paths = vcpo_bench/{module}", "also_copy = vcpo_bench")
    selection = ("pytest_add_cli_args_test_selection =", *(f"    {test}" for test in tests))
    (folder / "setup.cfg").write_text("\n".join([*settings, *selection, ""]), encoding="utf-8")
    session.chdir(folder)
    session.run("mutmut", "run", env=ONE_THREAD)
    session.run("mutmut", "results")
