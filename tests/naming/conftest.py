"""The catalog of the tests' own kind."""

from collections.abc import Iterator

import pytest
from kitchen import Bread, Dish, Soup, Water

from vcpo_bench.naming.catalog import CATALOGS, Catalog


@pytest.fixture
def dishes() -> Iterator[Catalog[Dish]]:
    catalog = Catalog("dish", Dish, (), plural="dishes", template="vcpo_bench_test_no_template")
    for kind in (Soup, Bread, Water):
        catalog.add(kind, "kitchen")
    yield catalog
    del CATALOGS["dish"]
