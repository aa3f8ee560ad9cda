"""Models from scratch: the sizes that the pages on language models name."""

import pytest

pytest.importorskip("transformers", reason="runs in .ci/integrations hf")

from vcpo_bench.bench.policies.hf.create import shape_for


def test_the_sizes_that_the_pages_of_the_studies_name() -> None:
    assert shape_for(1e6) == (4, 144, 16)
    assert shape_for(3e5, 32) == (2, 96, 32)
    assert shape_for(1e5)[:2] == (2, 64)
