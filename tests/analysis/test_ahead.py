"""Reading ahead: the same results in the same order, and never many at a time."""

import os
import threading

import pytest

from vcpo_bench.analysis.ahead import ahead


@pytest.mark.parametrize("processors", [1, 4, None])
@pytest.mark.parametrize("number", [0, 1, 47, 48, 49, 1000])
def test_results_come_in_the_order_of_the_items(
    monkeypatch: pytest.MonkeyPatch, processors: int | None, number: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    assert list(ahead(lambda item: item * 2, iter(range(number)))) == [2 * item for item in range(number)]


def test_threads_are_a_little_ahead_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    begun, names = [], set()

    def look(item: int) -> int:
        begun.append(item)
        names.add(threading.current_thread().name)
        return item

    found = ahead(look, range(1000))
    taken = [next(found) for _ in range(100)]
    assert taken == list(range(100))
    assert len(begun) <= 100 + 6 * 48
    assert all(name.startswith("ahead") for name in names)
    found.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ahead")]


def test_an_error_is_raised_where_its_result_would_have_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    def refuse(item: int) -> int:
        if item == 140:
            raise ValueError("not this one")
        return item

    found = ahead(refuse, range(200))
    assert [next(found) for _ in range(96)] == list(range(96))
    with pytest.raises(ValueError, match="not this one"):
        list(found)
