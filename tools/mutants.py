"""A mutation sample: small changes to the code of a package, one at a time, that its tests should notice.

    python tools/mutants.py bench/score_norms --tests tests/bench/score_norms --sample 40 --seed 0

Works on a copy of the repository. Every test runs once on the unchanged code, and each change is shown to the tests
that call its function (`warm_tests`). Prints every change that no test noticed; the exit code is 1 if there are any. A
mutant whose tests take three times as long as before counts as killed. Linux and macOS only.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from warm_tests import WarmTests

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".nox", "build", "dist", "results")
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"any": "all", "all": "any", "min": "max", "max": "min"}


class Mutant(NamedTuple):
    """A changed expression: the bytes `begin` to `end` of a file, and what takes their place.

    `function` is the line at which the innermost function around it begins, 0 outside of all.
    """

    path: Path
    line: int
    function: int
    begin: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before}  ->  {self.after}"


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Every way to change one node that the tests of its room should notice."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in OPERATORS:
        new.ops[0] = OPERATORS[type(new.ops[0])]()  # type: ignore[assignment]
        yield new
    elif isinstance(new, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(new.op) in OPERATORS:
        new.op = OPERATORS[type(new.op)]()  # type: ignore[assignment]
        yield new
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not | ast.USub):
        yield new.operand
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool | int | float):
        new.value = not new.value if isinstance(new.value, bool) else new.value + 1
        yield new
    elif isinstance(new, ast.Name) and new.id in NAMES:
        new.id = NAMES[new.id]
        yield new
    elif isinstance(new, ast.Attribute) and new.attr in NAMES:
        new.attr = NAMES[new.attr]
        yield new
    elif isinstance(new, ast.IfExp):
        new.body, new.orelse = new.orelse, new.body
        yield new


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, but for annotations, format strings and `strict=`, which no test can tell apart."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.keyword) and node.arg == "strict"):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from inside(child)


def functions(tree: ast.AST) -> Iterator[tuple[int, int, int]]:
    """Every function: the line it begins at, decorators included, and the first and last line of its body."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            begins = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            yield begins, node.body[0].lineno, node.end_lineno


def mutants_of(path: Path, source: str) -> list[Mutant]:
    """All mutants of one file."""
    starts = [0]
    for text in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(text))
    tree, found = ast.parse(source), []
    around = sorted(functions(tree))
    for node in inside(tree):
        for new in changed(node):
            line: int = node.lineno  # type: ignore[attr-defined]
            begin = starts[line - 1] + node.col_offset  # type: ignore[attr-defined]
            end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
            before, after = ast.unparse(node), ast.unparse(new)
            after = f"({after})" if isinstance(new, ast.expr) else after
            function = max((begins for begins, first, last in around if first <= line <= last), default=0)
            found.append(Mutant(path, line, function, begin, end, before, after))
    return found


def all_mutants(root: Path, room: str) -> list[Mutant]:
    """All mutants of a room (a folder or a file), with paths relative to the root."""
    start = root / room
    files = [start] if start.is_file() else sorted(start.rglob("*.py"))
    return [mutant for file in files for mutant in mutants_of(file.relative_to(root), file.read_text())]


def survives(mutant: Mutant, number: int, tests: WarmTests) -> bool:
    """Show one mutant to the tests that call its function, or any of its file where it is in none."""
    file = tests.folder / mutant.path
    source, times = file.read_bytes(), file.stat()
    try:
        file.write_bytes(source[: mutant.begin] + mutant.after.encode() + source[mutant.end :])
        os.utime(file, (times.st_atime, times.st_mtime + number))  # no bytecode of another text fits
        return tests.passes(tests.reaching((str(mutant.path), mutant.function)))
    finally:
        file.write_bytes(source)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def survivors(root: Path, rooms: Sequence[str], tests: Sequence[str], sample: int, seed: int) -> list[Mutant]:
    """Try a sample of the mutants of some rooms; returns those that the tests did not notice.

    Raises:
        SystemExit: The tests fail on the unchanged code.
    """
    found = [mutant for room in rooms for mutant in all_mutants(root, room)]
    chosen = random.Random(seed).sample(found, min(sample, len(found)))
    alive = []
    with tempfile.TemporaryDirectory() as holder:
        folder = Path(holder) / "copy"
        shutil.copytree(root, folder, symlinks=True, ignore=LEFT_OUT)
        warm = WarmTests(folder, tests)
        if not warm.learn():
            print((folder / "tests.log").read_text()[-5000:])
            raise SystemExit(f"{' '.join(tests)} fail before anything is changed")
        for number, mutant in enumerate(chosen, 1):
            survived = survives(mutant, number, warm)
            alive += [mutant] * survived
            print(f"{number}/{len(chosen)} {'SURVIVED' if survived else 'killed'} {mutant}", flush=True)
    print(f"{len(chosen) - len(alive)} of {len(chosen)} killed ({len(found)} mutants in all, seed {seed})")
    return alive


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="+", help="folders or files, relative to the root of the repository")
    parser.add_argument("--tests", nargs="+", required=True, help="what pytest is asked to run")
    parser.add_argument("--sample", type=int, default=40, help="number of mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: %(default)s)")
    asked = parser.parse_args()
    alive = survivors(ROOT, asked.rooms, asked.tests, asked.sample, asked.seed)
    for mutant in alive:
        print(f"survived: {mutant}")
    raise SystemExit(1 if alive else 0)


if __name__ == "__main__":
    main()
