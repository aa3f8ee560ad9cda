"""YAML as people write it into settings: plain values, and no key twice."""

from __future__ import annotations

from typing import Any

import yaml


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


def read_yaml(text: str) -> Any:
    """The value of a document.

    Raises:
        yaml.YAMLError: It is no YAML, or has a key twice.
    """
    return yaml.load(text, Loader=_Once)
