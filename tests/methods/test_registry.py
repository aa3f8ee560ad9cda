"""Methods are found, not listed; third parties can add theirs and cannot break ours."""

import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

from vcpo_bench.methods import (
    METHODS,
    PluginError,
    describe,
    load_plugin,
    method_names,
    parse_method,
    part_names,
)

HALF = '''
from dataclasses import dataclass
from typing import ClassVar
from vcpo_bench.methods import EvidenceView, RatioMethod, Terms

@dataclass(frozen=True, kw_only=True)
class Half(RatioMethod):
    """c = A / 2."""
    name: ClassVar[str] = "half"
    def terms(self, ev: EvidenceView) -> Terms:
        return Terms(weight=ev.ratio() * 0 + 0.5)
'''


@pytest.fixture(autouse=True)
def _fresh_registry() -> object:
    yield
    METHODS.forget()


@pytest.mark.parametrize("folder", ["vcpo_bench.methods", "vcpo_bench.methods.parts"])
def test_every_file_of_these_folders_is_called_what_a_user_types(folder: str) -> None:
    modules = {
        f"{folder}.{info.name}" for info in pkgutil.iter_modules(import_module(folder).__path__) if not info.ispkg
    }
    assert len(modules) >= 35
    named = {name: METHODS.origin(name) for name in METHODS.kinds}
    assert modules <= set(named.values())
    for name, origin in named.items():
        assert origin.rpartition(".")[2] == name.replace("-", "_")


def test_what_trainers_call_a_method_is_no_name_here() -> None:
    elsewhere = {spelled for kind in METHODS.kinds.values() for spelled in kind.known_as}
    assert elsewhere
    assert all(spelled == spelled.lower() and "_" not in spelled for spelled in elsewhere)
    assert not elsewhere & set(METHODS.kinds)


def test_names_are_unique_and_words() -> None:
    names = {*method_names(), *part_names()}
    assert all(name == name.lower() and " " not in name and "_" not in name for name in names)


def test_every_component_says_what_it_is() -> None:
    for name in {*method_names(), *part_names()}:
        facts = describe(name)
        assert facts.summary, name
        assert facts.formula, name
        assert facts.reference or facts.acts_on == "step", name


def test_a_plugin_file_joins_the_grammar(tmp_path: Path) -> None:
    file = tmp_path / "half.py"
    file.write_text(HALF)
    assert load_plugin(file) == ["half"]
    assert parse_method("half+ess").canonical == "half+ess"
    assert "half" in method_names()
    assert describe("half").origin == str(file)
    before = parse_method("half+ess").plugins
    assert len(before) == 10
    assert parse_method("clip+ess").plugins == ""
    file.write_text(HALF + "\n")
    load_plugin(file)
    assert parse_method("half+ess").plugins not in ("", before)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HALF.replace('"half"', '"clip"'), "defines the method 'clip'"),
        (
            HALF.replace('"half"', '"half"\n    slot: ClassVar[str] = "nose"'),
            "has the slot 'nose'; use one of admission",
        ),
    ],
)
def test_a_broken_plugin_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "plug.py"
    file.write_text(text)
    with pytest.raises(PluginError, match=message) as caught:
        load_plugin(file)
    assert "\n" not in str(caught.value)
    assert parse_method("clip").name == "clip"
