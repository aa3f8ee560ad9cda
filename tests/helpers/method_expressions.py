"""Method expressions that visit every registered name and every word its parameters may take."""

from vcpo_bench.methods import METHODS, Method
from vcpo_bench.naming.component import parameters


def every_choice() -> list[str]:
    """Each method and part with its defaults, and with every other word of every parameter, one at a time."""
    return [text for name in sorted(METHODS.kinds) for text in settings_of(name)]


def settings_of(name: str) -> list[str]:
    """One method or part with its defaults, then with every other word of every parameter, one at a time."""
    found = parameters(METHODS.kinds[name]).items()
    words = [
        f"({key}={word})"
        for key, (default, parameter) in found
        for word in parameter.words
        if word != parameter.write(default)
    ]
    return [_whole(name, setting) for setting in ("", *words)]


def _whole(name: str, setting: str) -> str:
    """An expression that uses it; a part is added to its host, or to reinforce."""
    kind = METHODS.kinds[name]
    host = "" if issubclass(kind, Method) else f"{kind.host or 'reinforce'}+"
    return f"{host}{name}{setting}"
