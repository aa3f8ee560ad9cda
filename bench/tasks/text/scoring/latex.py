r"""Answers as people write them in LaTeX, brought to one spelling: `\dfrac12` and `\frac{1}{2}` become equal.

Only spelling changes here, never value. One pass over the tokens, so the time is linear in the length of the answer.
"""

import re

MAX_DEPTH = 30
"""Braces nested deeper than this are no answer."""

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\s+|.", re.DOTALL)
_PLAIN_ROOT = re.compile(r"(?<![\\A-Za-z])sqrt(?=\s*[({\d])")
_CHOICE = re.compile(r"\A\((.)\)\Z")  # the C of (C)
_SIZES = (
    r"\left", r"\right", r"\big", r"\Big", r"\bigl", r"\bigr", r"\Bigl", r"\Bigr", r"\displaystyle", r"\textstyle",
)  # fmt: skip
_FONTS = (r"\mathbf", r"\boldsymbol", r"\bm", r"\boxed", r"\fbox", r"\limits")
_SPACES = (r"\,", r"\;", r"\:", r"\!", "\\ ", r"\quad", r"\qquad", "~")
_MARKS = ("$", r"\$", r"\(", r"\)", r"\[", r"\]", "%", r"\%", r"\degree", "\N{DEGREE SIGN}", "\N{EURO SIGN}")
_IGNORED = frozenset(_SIZES + _FONTS + _SPACES + _MARKS)
_SPELLINGS = {
    r"\frac": (r"\dfrac", r"\tfrac", r"\cfrac"),
    r"\binom": (r"\dbinom", r"\tbinom"),
    r"\le": (r"\leq", r"\leqslant", "\N{LESS-THAN OR EQUAL TO}"),
    r"\ge": (r"\geq", r"\geqslant", "\N{GREATER-THAN OR EQUAL TO}"),
    r"\ne": (r"\neq", "\N{NOT EQUAL TO}"),
    "<": (r"\lt",),
    ">": (r"\gt",),
    "-": ("\N{MINUS SIGN}", "\N{EN DASH}"),
    "*": (r"\times", r"\cdot", r"\ast", "\N{MULTIPLICATION SIGN}", "\N{MIDDLE DOT}"),
    "/": (r"\div", "\N{DIVISION SIGN}"),
    r"\{": (r"\lbrace",),
    r"\}": (r"\rbrace",),
    "[": (r"\lbrack",),
    "]": (r"\rbrack",),
    r"\ldots": (r"\dots", r"\cdots", "\N{HORIZONTAL ELLIPSIS}"),
    r"\emptyset": (r"\varnothing", "\N{EMPTY SET}"),
    r"\pi": ("\N{GREEK SMALL LETTER PI}",),
    r"\infty": ("\N{INFINITY}",),
    r"\cup": ("\N{UNION}",),
    r"\sqrt": ("\N{SQUARE ROOT}",),
    r"\pm": ("\N{PLUS-MINUS SIGN}",),
    r"\in": ("\N{ELEMENT OF}",),
}
_SYNONYMS = {spelling: common for common, spellings in _SPELLINGS.items() for spelling in spellings}
_UPRIGHT = (r"\text", r"\mbox", r"\hbox", r"\textbf", r"\textit", r"\textrm", r"\textnormal", r"\mathrm", r"\mathsf")
_WORDS = frozenset((*_UPRIGHT, r"\operatorname"))
_ARGUMENTS = {r"\frac": 2, r"\binom": 2, r"\sqrt": 1, r"\overline": 1, "^": 1, "_": 1}
_ENVIRONMENTS = {"bmatrix": "pmatrix", "matrix": "pmatrix", "smallmatrix": "pmatrix"}


class TooDeepError(ValueError):
    """The braces are nested deeper than `MAX_DEPTH`."""


def one_spelling(answer: str) -> str:
    r"""The answer without spacing and sizing commands, arguments in braces, one command of each meaning.

    Words stay in `\text{...}`, in lower case if longer than a letter; a command is followed by one space.

    Raises:
        TooDeepError: Braces are nested deeper than `MAX_DEPTH`.
    """
    return _Reader(_TOKEN.findall(_PLAIN_ROOT.sub(r"\\sqrt", answer))).sequence(0, "")


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._place = 0

    def sequence(self, depth: int, closing: str) -> str:
        """Everything up to the closing token, which is consumed; up to the end if there is none."""
        if depth > MAX_DEPTH:
            raise TooDeepError
        parts = []
        while (token := self._next()) not in ("", closing):
            parts.append(self._atom(token, depth))
        return "".join(parts)

    def _next(self) -> str:
        """The next token, in its common spelling; an empty one at the end."""
        if self._place == len(self._tokens):
            return ""
        self._place += 1
        token = self._tokens[self._place - 1]
        return _SYNONYMS.get(token, token)

    def _atom(self, token: str, depth: int) -> str:
        if token.isspace() or token in _IGNORED or token == "}":
            return ""
        if token == "{":
            return self.sequence(depth + 1, "}")
        if token in _WORDS:
            words = _CHOICE.sub(r"\1", " ".join(self._raw().split()))
            return f"\\text{{{words.lower() if len(words) > 1 else words}}}"
        if token in (r"\begin", r"\end"):
            name = self._raw().strip()
            return f"{token}{{{_ENVIRONMENTS.get(name, name)}}}"
        if token in _ARGUMENTS:
            return self._command(token, depth)
        return f"{token} " if token[1:].isalpha() else token

    def _command(self, token: str, depth: int) -> str:
        root = self._optional(depth) if token == r"\sqrt" else ""
        arguments = [self._argument(token, depth) for _ in range(_ARGUMENTS[token])]
        if token == "^" and arguments == [r"\circ "]:  # degrees
            return ""
        return token + root + "".join(f"{{{argument}}}" for argument in arguments)

    def _argument(self, command: str, depth: int) -> str:
        """What a command applies to: a group or one token, as in TeX; `sqrt(2)` is taken as it is meant."""
        token = self._skip_spaces()
        if command == r"\sqrt" and token == "(":
            return self.sequence(depth + 1, ")")
        if depth >= MAX_DEPTH:  # also bounds x^x^x^... and \sqrt\sqrt...
            raise TooDeepError
        return self._atom(token, depth + 1) if token else ""

    def _optional(self, depth: int) -> str:
        before = self._place
        if self._skip_spaces() == "[":
            return f"[{self.sequence(depth + 1, ']')}]"
        self._place = before
        return ""

    def _skip_spaces(self) -> str:
        while (token := self._next()).isspace():
            pass
        return token

    def _raw(self) -> str:
        """The text of the group that follows, as it stands."""
        first = self._skip_spaces()
        if first != "{":
            self._place -= bool(first)
            return ""
        start, open_groups = self._place, 1
        while open_groups and (token := self._next()):
            open_groups += (token == "{") - (token == "}")
        return "".join(self._tokens[start : self._place - (not open_groups)])
