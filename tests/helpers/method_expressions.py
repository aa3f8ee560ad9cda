"""Method expressions that visit every registered name and every word its parameters may take."""

from vcpo_bench.methods import METHODS, Method
from vcpo_bench.naming.component import parameters


def every_choice() -> list[str]:
    """Each method and part with its defaults, and with every other word of every parameter, one at a time."""
    return [_whole(name, setting) for name in sorted(METHODS.kinds) for setting in ("", *_settings(name))]


def _settings(name: str) -> list[str]:
    """`(key=word)` for every word that is not the default."""
    found = parameters(METHODS.kinds[name]).items()
    return [
        f"({key}={word})"
        for key, (default, parameter) in found
        for word in parameter.words
        if word != parameter.write(default)
    ]


def _whole(name: str, setting: str) -> str:
    """An expression that uses it; a part is added to its host, or to reinforce."""
    kind = METHODS.kinds[name]
    host = "" if issubclass(kind, Method) else f"{kind.host or 'reinforce'}+"
    return f"{host}{name}{setting}"
