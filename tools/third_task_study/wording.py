"""What the page of the third task says, in words made from its tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from phase_study.contrasts import MATCHED, SHUFFLED
from phase_study.wording import answer_checks, gains, laws, part, ratios, reach

_CONTROLS = {
    MATCHED: "the same updates with a constant step of the same mean",
    SHUFFLED: "the same updates with VCPO's own steps in random order",
}


def answer(tables: Mapping[str, pd.DataFrame]) -> str:
    """The answers to the registered questions."""
    rates = tables["rates"]
    parts = [part("Does the rate that survives fall as 1 / lag?", laws, tables["exponents"])]
    parts += [
        part(f"Does VCPO tolerate a larger rate than {words}?", ratios, rates[rates["against"] == control])
        for control, words in _CONTROLS.items()
    ]
    parts.append([f"Six intervals, not corrected for their number. {reach(rates)}"])
    parts.append(
        part("Does VCPO end higher than TIS, each at its own largest surviving rate?", gains, tables["rewards"])
    )
    parts.append(answer_checks(tables["checks"]))
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"
