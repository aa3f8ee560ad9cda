"""What single pages say is so: features, figures, index, security, rules, clusters, installing and loss hooks."""

import ast
import re
import subprocess
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from vcpo_bench.adapters import prime_rl, skyrl, slime
from vcpo_bench.adapters.row_local import bind
from vcpo_bench.bench.machine.gpu_estimate import GPUS, Workload, fits, memory
from vcpo_bench.bench.machine.model_shapes import KNOWN
from vcpo_bench.commands.support.launching import read_launcher
from vcpo_bench.records import RULES_VERSION
from vcpo_bench.reports.plots.catalog import FIGURES
from vcpo_bench.reports.writers.venues import VENUES

ROOT = Path(__file__).parents[2]
FEATURES = (ROOT / "docs" / "features.md").read_text()
FEATURE_ROWS = re.findall(r"^\| (\d+) \| .+? \| (have|partly|none) \| (.+) \|$", FEATURES, flags=re.M)


def test_the_count_is_that_of_the_rows() -> None:
    assert [int(number) for number, _, _ in FEATURE_ROWS] == list(range(1, 69))
    states = Counter(state for _, state, _ in FEATURE_ROWS)
    assert f"**Of 68: {states['have']} have, {states['partly']} partly, {states['none']} none.**" in FEATURES


def test_the_evidence_is_there() -> None:
    for number, _, evidence in FEATURE_ROWS:
        folder = Path()
        for path in re.findall(r"`((?:tests/|test_)[\w/.]+)`", evidence):
            folder = Path(path).parent if path.startswith("tests/") else folder
            assert (ROOT / (path if path.startswith("tests/") else folder / path)).exists(), (number, path)


DOCS = Path(__file__).parents[2] / "docs"
GALLERY = (DOCS / "figures.md").read_text()
PARTS = re.split(r"^### ", GALLERY, flags=re.M)[1:]


def test_every_figure_is_there() -> None:
    assert sorted(part.split()[0] for part in PARTS) == sorted(FIGURES)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.split()[0])
def test_a_figure_has_its_command_and_its_picture_or_says_what_it_needs(part: str) -> None:
    name = part.split()[0]
    assert re.search(rf"^    vcpo-bench report DIR --figure {name}$", part, flags=re.M)
    assert f"](figures/{name}.png)" in part or "needs" in part


def test_pictures_are_there_small_and_shown() -> None:
    shown = re.findall(r"!\[.+\]\((figures/.+\.png)\)", GALLERY)
    assert sorted(shown) == sorted(str(path.relative_to(DOCS)) for path in (DOCS / "figures").iterdir())
    assert all((DOCS / path).stat().st_size < 90_000 for path in shown)


def test_venues_are_those_there_are() -> None:
    for venue in VENUES:
        assert f"`{venue}`" in GALLERY


def test_every_page_is_linked_from_the_index() -> None:
    linked = set(re.findall(r"\]\(([^)#]+)", (DOCS / "index.md").read_text()))
    pages = [
        *DOCS.glob("*.md"),
        *DOCS.glob("benchmarks/*.md"),
        *DOCS.glob("studies/*.md"),
        *DOCS.glob("studies/*/README.md"),
    ]
    assert not {str(page.relative_to(DOCS)) for page in pages} - linked - {"index.md"}


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_every_row_of_a_table_has_its_columns(page: Path) -> None:
    """A bar in a cell begins another one, unless it is escaped."""
    code = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for table in re.findall(r"(?:^ *\|.*\n)+", code, flags=re.M):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1, table


SECURITY = (ROOT / "SECURITY.md").read_text()
PROMISES = (
    SECURITY.partition("## What holds, and its test")[2].partition("\n\n|")[2].partition("\n\n")[0].splitlines()[2:]
)


def test_every_promise_names_tests_that_exist() -> None:
    assert len(PROMISES) > 20
    for promise in PROMISES:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", promise)
        assert named, promise
        for file, name in named:
            assert name in functions(ROOT / file), promise


def test_every_file_that_the_page_names_exists() -> None:
    named = re.findall(r"`((?:tests|\.ci)/[\w/.]+)", SECURITY)
    assert [file for file in named if not (ROOT / file).exists()] == []


def functions(file: Path) -> set[str]:
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}


STUDIES = [*(DOCS / "studies").glob("*.md"), *(DOCS / "studies").glob("*/README.md")]
REWARDS = [DOCS / "benchmarks" / "regimes.md", DOCS / "benchmarks" / "async.md"]
SAID = re.compile(r"^> \*\*Rules (\d+\.\d+)\*\*(.*(?:\n> .*)*)", re.MULTILINE)


@pytest.mark.parametrize("page", [*STUDIES, *REWARDS], ids=lambda page: str(page.relative_to(DOCS)))
def test_results_name_their_rules(page: Path) -> None:
    said = SAID.search(page.read_text(encoding="utf-8"))
    assert said, "add a line such as '> **Rules 2.0**' below the heading"
    version, rest = said.groups()
    if version != RULES_VERSION:
        target = re.search(r"\]\(([^)#]+)#rules-versions\)", rest)
        assert target, "link to how these rules are had again"
        assert (page.parent / target[1]).resolve() == DOCS / "runs.md"


def test_the_page_on_runs_has_a_column_of_every_version() -> None:
    section = (DOCS / "runs.md").read_text(encoding="utf-8").split("\n## Rules versions\n")[1].split("\n## ")[0]
    columns = next(line for line in section.splitlines() if line.startswith("| |"))
    versions = {m[1] for page in STUDIES if (m := SAID.search(page.read_text(encoding="utf-8")))} | {RULES_VERSION}
    assert versions <= set(re.findall(r"\d+\.\d+", columns))


SCRIPTS = sorted((ROOT / "examples" / "scale").glob("*.sh"))
SCALE = (ROOT / "docs" / "scale.md").read_text()


def test_there_are_scripts_for_slurm_and_for_ray() -> None:
    assert {path.name for path in SCRIPTS} >= {"slurm_grid.sh", "ray_grid.sh", "same_bits.sh"}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_shell_and_the_page_names_it(path: Path) -> None:
    done = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    text = path.read_text()
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in text
    assert f"(../examples/scale/{path.name})" in SCALE
    assert f"{path.name} " in text, "says how to call it"


def test_the_cluster_file_is_taken() -> None:
    assert read_launcher("slurm", ROOT / "examples" / "scale" / "cluster.yaml").text().startswith("slurm(")


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED = {re.split(r"[<>=]", line)[0]: line for line in PROJECT["dependencies"]}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_pages_say_which_python_and_torch() -> None:
    least, below = re.fullmatch(r"torch>=([\d.]+),<([\d.]+)", NEEDED["torch"]).groups()  # type: ignore[union-attr]
    assert f"torch ({least} or newer, below {below})" in page("docs/platforms.md")
    for name in ("README.md", "docs/platforms.md"):
        assert f"Python {PROJECT['requires-python'].removeprefix('>=')} or newer" in page(name)


def test_what_is_installed_without_torch_is_every_other_dependency() -> None:
    (listed,) = re.findall(r"^    pip install ((?:[a-z0-9]+ )+[a-z0-9]+)$", page("docs/python.md"), flags=re.M)
    assert set(listed.split()) == set(NEEDED) - {"torch", "safetensors"}


def test_a_lent_machine_needs_every_dependency_but_those_named() -> None:
    """`.ci/integrations gpu_day` runs the kit without the others."""
    text = page("docs/gpu.md")
    ((there, absent),) = re.findall(r"needs (torch[^.]*?) there,\s+but\s+not ([^.]*)\.", text)
    words = [set(re.findall(r"[a-z0-9]+", part)) - {"and", "or"} for part in (there, absent.replace("vLLM", ""))]
    assert words[0] - {"transformers"} == set(NEEDED) - words[1]
    assert words[1] == {"matplotlib", "typst"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_page_installs_from_an_index_that_has_no_such_package(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.name == "platforms.md":  # explains what messages of an installed package say
        text = text.replace("`pip install 'vcpo-bench[hf]'`: pip then adds", "")
    assert "'vcpo-bench[" not in text
    assert set(re.findall(r"pip install '\.\[(\w+)\]'", text)) <= set(PROJECT["optional-dependencies"])


WORK = Workload(32, 16, 2048, dtype="bfloat16", checkpointing=True, micro_tokens=16384, slots=64)


@pytest.mark.parametrize(
    ("model", "lora", "gpu", "fitting"),
    [
        ("Qwen2.5-1.5B", 0, "H100-80", True),
        ("Qwen2.5-7B", 0, "H200", False),
        ("Qwen2.5-14B", 64, "H100-80", True),
        ("Qwen2.5-32B", 64, "H200", True),
    ],
)
def test_what_the_first_table_of_the_page_says_fits_is_what_the_arithmetic_says(
    model: str, lora: int, gpu: str, fitting: bool
) -> None:
    (chosen,) = [one for one in GPUS if one.name == gpu]
    assert fits(memory(KNOWN[model], replace(WORK, lora=lora)), chosen) == fitting
    assert (
        "all weights of 7B need more than one GPU of 141 GB, and with `--lora` 14B fits on one of 80 GB "
        "and 32B on one of 141 GB"
    ) in SCALE


LOSS_PATHS = (DOCS / "loss_paths.md").read_text()


def between(start: str, end: str) -> str:
    return LOSS_PATHS.split(start, 1)[1].split(end, 1)[0]


def test_the_expressions_to_copy_are_taken() -> None:
    in_prime_rl = between('method = "', '"')
    in_slime = yaml.safe_load(between("# loss.yaml\n", "```"))[slime.SETTING]
    in_skyrl = between('register("', '"')
    bind(in_prime_rl, prime_rl.HOOK)
    bind(in_slime, slime.HOOK)
    bind(in_skyrl, skyrl.HOOKS["token_mean"])


def test_the_paths_to_copy_exist() -> None:
    assert f'"{prime_rl.loss.__module__}.loss"' in LOSS_PATHS
    assert f"{slime.loss.__module__}.loss" in LOSS_PATHS
