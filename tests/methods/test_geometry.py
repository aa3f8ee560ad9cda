"""Where methods act, measured, against what is known of them."""

import pytest

from vcpo_bench.adapters.locality import locality_of
from vcpo_bench.methods import geometry_of, method_names, parse_method
from vcpo_bench.methods.core.reach import Scope


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("reinforce", "none"),
        ("token-tis", "weight on sampler-current, by token"),
        ("clip", "clip, weight on sampler-current, by token"),
        ("clip(anchor=proximal)", "clip, weight on anchor-current, by token"),
        ("decoupled", "clip, weight on sampler-anchor, anchor-current, by token"),
        ("icepop", "mask, weight on sampler-current, by token"),
        ("reinforce+kpop(of=proximal)", "mask on sampler-anchor, by token"),
        ("minpro", "clip, weight on sampler-current, by prefix"),
        ("gspo", "clip, weight on sampler-current, by sequence"),
        ("veto", "mask on sampler-current, by sequence"),
        ("gepo", "clip, weight on sampler-current, by group"),
        ("m2po", "clip, weight on sampler-current, by batch"),
        ("vcpo", "weight, step on sampler-current, by batch"),
        ("positive-only", "mask, weight on sampler-current, by token"),
        ("reinforce+kl(anchor=reference)", "pull on reference-current, by token"),
        ("reinforce+entropy", "entropy"),
        ("inverse-lag", "step on lag"),
        ("gap-aware", "step on weights"),
        ("dc-asgd", "gradient on weights"),
        ("clip+lr-matched", "clip, weight, step on sampler-current, by token"),
        ("sampo", "admission, clip, weight on sampler-current, by sequence"),
    ],
)
def test_what_is_measured_is_what_the_method_is(text: str, shown: str) -> None:
    assert str(geometry_of(text)) == shown


@pytest.mark.parametrize("name", method_names())
def test_no_method_decides_over_a_wider_set_than_the_locality_table_says(name: str) -> None:
    scopes = {"": 0, "token": 0, "prefix": 0, "sequence": 0, "group": Scope.GROUP, "batch": Scope.BATCH}
    assert scopes[geometry_of(name).level] <= locality_of(parse_method(name)).whole
