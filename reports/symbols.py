"""Symbols of mathematics in labels: plain Unicode where text is read, typeset where it is printed."""

from __future__ import annotations

import re

from matplotlib.text import Text

MATH = {
    "D_KL(μ‖θ)": r"$D_{\mathrm{KL}}(\mu\,\|\,\theta)$",
    "k\u0302": r"$\hat{k}$",
}
"""Each symbol as labels, tables and terminals write it, and as matplotlib and LaTeX typeset it."""

FOUND = re.compile("(" + "|".join(re.escape(symbol) for symbol in MATH) + ")")
"""Where a text holds one; splitting by it keeps the symbols."""


def typeset(label: Text) -> None:
    """Typeset the symbols of a label of a figure; a label without any stays plain text."""
    text = label.get_text()
    if FOUND.search(text):
        label.set_text(FOUND.sub(lambda found: MATH[found.group()], text))
        label.set_parse_math(True)
