"""A public class name stands for one thing in the whole package, so that a reader never asks which one is meant."""

import ast
from collections import defaultdict
from pathlib import Path

from import_graph import read_package

import vcpo_bench

ROOT = Path(vcpo_bench.__file__).resolve().parent


def test_a_class_name_stands_for_one_thing() -> None:
    places = defaultdict(list)
    for file in read_package(ROOT).values():
        for node in ast.walk(ast.parse(file.path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{file.name}:{node.lineno}")
    assert "Method" in places
    several = {name: found for name, found in places.items() if len(found) > 1}
    assert not several, "give each of these classes a name of its own: " + "; ".join(
        f"{name} ({', '.join(found)})" for name, found in sorted(several.items())
    )
