"""YAML as people write it into settings: plain values, and no key twice."""

from __future__ import annotations

import re
import reprlib
from pathlib import Path
from typing import Any

import yaml

from vcpo_bench.errors import UsageError

_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*|[0-9]*[.][0-9]*([eE][-+][0-9]+)?|[.](inf|Inf|INF|nan|NaN|NAN))")


class _Once(yaml.SafeLoader):
    """The safe loader, which by itself takes the last of several values and says nothing."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """A mapping as it is written, before merge keys bring in others.

        Raises:
            yaml.constructor.ConstructorError: A key is there twice.
        """
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value} is there twice; drop one of the two", key.start_mark
                )
            seen.add((key.tag, key.value))
        return node

    def construct_number(self, node: yaml.ScalarNode) -> object:
        """A decimal number; any other spelling as the text it is, which YAML 1.1 takes for octal or minutes."""
        read = self.construct_yaml_int if node.tag.endswith(":int") else self.construct_yaml_float
        number = read(node)
        return number if _DECIMAL.fullmatch(node.value) else node.value


for _kind in ("int", "float"):
    _Once.add_constructor(f"tag:yaml.org,2002:{_kind}", _Once.construct_number)


def read_yaml(text: str) -> Any:
    """The value of a document.

    Raises:
        yaml.YAMLError: It is no YAML, or has a key twice.
    """
    return yaml.load(text, Loader=_Once)


def read_settings_file(path: Path, where: str, such_as: str) -> dict[Any, Any]:
    """The lines of a file of settings.

    Args:
        path: The file.
        where: What names it, for messages: `--config FILE`.
        such_as: What a line of it looks like.

    Raises:
        UsageError: It cannot be read, is no YAML, or holds something else.
    """
    try:
        values = read_yaml(path.read_text())
    except OSError as error:
        raise UsageError(f"{where}: cannot be read ({error.strerror})") from error
    except RecursionError as error:
        raise UsageError(f"{where}: lists or mappings are nested too deeply; one level is enough") from error
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
        raise UsageError(f"{where}: invalid YAML ({_problem(error)})") from error  # such as `!!int abc`
    if not isinstance(values, dict):
        raise UsageError(f"{where}: must contain lines such as {such_as!r}, not {reprlib.repr(values)}")
    return values


def _problem(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return where + " ".join(str(getattr(error, "problem", None) or error).split())
