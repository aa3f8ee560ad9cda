"""What a column of a recorded table is: name, storage kind, unit, record level and meaning."""

from typing import Literal, NamedTuple

Level = Literal["basic", "diagnostics", "full"]
"""How much is recorded; each level contains the one before."""

Kind = Literal["int", "float", "bool", "str"]


class Column(NamedTuple):
    """One column of a table: its name, storage kind, unit, the record level that writes it, and its meaning."""

    name: str
    kind: Kind
    unit: str
    level: Level
    meaning: str
