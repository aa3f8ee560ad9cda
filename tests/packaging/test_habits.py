"""What stands beside the code says the same as the code."""

import ast
import os
import re
import runpy
import subprocess
from pathlib import Path

import yaml

import vcpo_bench

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_citation_is_of_this_version_and_names_authors() -> None:
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert citation["version"] == vcpo_bench.__version__
    papers = {paper["identifiers"][0]["value"]: paper["authors"] for paper in citation["references"]}
    readme = (REPOSITORY / "README.md").read_text()
    assert set(papers) <= {f"arXiv:{number}" for number in re.findall(r"arXiv[: ](\d{4}\.\d{5})", readme)}
    assert all({"given-names", "family-names"} <= author.keys() for authors in papers.values() for author in authors)


def test_the_sessions_contributors_are_told_of_exist() -> None:
    tree = ast.parse((REPOSITORY / "noxfile.py").read_text())
    sessions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    (told,) = re.findall(r"`nox -l` lists them \((.*?)\)", (REPOSITORY / "CONTRIBUTING.md").read_text(), flags=re.S)
    assert set(re.findall(r"`([\w-]+)`", told)) <= sessions


def files_of_the_repository() -> list[Path]:
    """What git tracks; without git (a source distribution), what lies there outside hidden folders."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True)
    if listed.returncode == 0:
        return [path for name in listed.stdout.split("\0") if name and (path := REPOSITORY / name).is_file()]
    return [
        path
        for path in REPOSITORY.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(REPOSITORY).parts)
    ]


def test_no_file_is_larger_than_a_study() -> None:
    """A core of a crashed daemon was once committed unseen."""
    files = files_of_the_repository()
    assert REPOSITORY / "README.md" in files
    assert {str(path): size for path in files if (size := path.stat().st_size) > 2**20} == {}


def test_commit_hooks_download_nothing() -> None:
    hooks = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())["repos"]
    assert {repository["repo"] for repository in hooks} == {"local"}
    assert {hook["language"] for repository in hooks for hook in repository["hooks"]} == {"system"}


def test_a_forge_runs_what_must_pass() -> None:
    ci = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "ci.yml").read_text())
    steps = "\n".join(step.get("run", "") for job in ci["jobs"].values() for step in job["steps"])
    script = (REPOSITORY / ".ci" / "run").read_text()
    for command in ("pip install '.[test]'", "pytest -n auto", "ruff check .", "ruff format --check .", "mypy"):
        assert command in script
        assert command in steps
    assert ".ci/lanes.py run-due" in script
    assert ".ci/lanes.py due --json" in steps


def test_there_is_a_link_for_every_room_and_module() -> None:
    tool = runpy.run_path(str(REPOSITORY / "tools" / "link_types.py"))
    assert tool["present"]() == tool["wanted"](), "run: python tools/link_types.py"


def test_following_the_links_ends() -> None:
    for folder, names, _ in os.walk(REPOSITORY / ".types", followlinks=True):
        for name in names:
            real = (Path(folder) / name).resolve()
            assert not Path(folder).resolve().is_relative_to(real), f"{folder}/{name} leads back to {real}"
