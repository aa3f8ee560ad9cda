"""A part or method that leaves out what its slot asks for says so by name."""

import pytest

from vcpo_bench.methods.core import interfaces as base
from vcpo_bench.methods.core.view import EvidenceView


@pytest.mark.parametrize(
    ("slot", "function"),
    [
        (base.Admission, "admit"),
        (base.Baseline, "advantage"),
        (base.Mask, "keep"),
        (base.Aggregation, "factor"),
        (base.Step, "scale"),
    ],
)
def test_an_unfilled_slot_names_the_part_and_what_it_lacks(slot: type[base.Part], function: str) -> None:
    unfinished = type("Unfinished", (slot,), {})()
    with pytest.raises(NotImplementedError, match=rf"Unfinished must define {function}\(\)"):
        getattr(unfinished, function)(EvidenceView.__new__(EvidenceView))
