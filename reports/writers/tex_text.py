"""Text as LaTeX prints it."""

from __future__ import annotations

import re

from vcpo_bench.reports.symbols import FOUND, MATH

_GREEK = {
    "\u03b1": "alpha",
    "\u03b2": "beta",
    "\u03b3": "gamma",
    "\u03b4": "delta",
    "\u03b5": "epsilon",
    "\u03b8": "theta",
    "\u03bb": "lambda",
    "\u03bc": "mu",
    "\u03c0": "pi",
    "\u03c1": "rho",
    "\u03c3": "sigma",
}

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "\u2212": "$-$",
    "\u2013": "--",
    "\u2014": "---",
    "\u2018": "`",
    "\u2019": "'",
    "\u201c": "``",
    "\u201d": "''",
    "\u2026": r"\ldots{}",
    "\u00a0": "~",
    "\u00b1": r"$\pm$",
    "\u2016": r"$\|$",
    "\u2207": r"$\nabla$",
    "\u00b2": r"$^2$",
    "\u00b7": r"$\cdot$",
    "\u00d7": r"$\times$",
    "\u2190": r"$\leftarrow$",
    "\u2192": r"$\rightarrow$",
    "\u221e": r"$\infty$",
    "\u2248": r"$\approx$",
    "\u2260": r"$\ne$",
    "\u2264": r"$\le$",
    "\u2265": r"$\ge$",
    **{letter: rf"$\{name}$" for letter, name in _GREEK.items()},
}
"""What LaTeX needs for letters that mean something to it, or that its fonts lack."""

_CODE = re.compile(r"`([^`]+)`")


def escape(text: str) -> str:
    """Text that LaTeX prints as it is, its symbols (`reports.symbols`) as mathematics.

    Letters that pdfLaTeX has no glyph for, such as Chinese in a transcript, become their code point.
    """
    pieces = FOUND.split(" ".join(text.split()))
    return "".join(MATH[piece] if place % 2 else _escaped(piece) for place, piece in enumerate(pieces))


def _escaped(plain: str) -> str:
    return "".join(_letter(one, after) for one, after in zip(plain, plain[1:] + " ", strict=False))


def prose(text: str) -> str:
    """A caption: what stands between backticks is set as code, which may be broken after a hyphen or an underscore."""
    pieces = _CODE.split(" ".join(text.split()))
    return "".join(_code(piece) if place % 2 else _spaced(piece) for place, piece in enumerate(pieces))


def _code(text: str) -> str:
    breakable = re.sub(r"([-_])(?=[A-Za-z])", r"\1\\allowbreak ", escape(text))
    return rf"\texttt{{{breakable}}}"


def _spaced(text: str) -> str:
    before, after = text[:1].isspace(), text[1:] != "" and text[-1:].isspace()
    return " " * before + escape(text) + " " * after


def _letter(letter: str, after: str) -> str:
    if letter in SPECIAL:
        return SPECIAL[letter]
    if letter == after and letter in "-'":  # two of them would become one sign
        return letter + "{}"
    return letter if is_known(letter) else f"[U+{ord(letter):04X}]"


def is_known(letter: str) -> bool:
    """Whether pdfLaTeX prints a letter that `SPECIAL` does not name."""
    return letter.isascii() or "\u00c0" <= letter <= "\u017f"
