import numpy as np
import pytest

from vcpo_bench.bench.streams import uniforms


def test_a_number_depends_on_its_own_key_only() -> None:
    wide = uniforms(3, "sampling", 7, 128, 40)
    assert np.array_equal(wide[:16, :12], uniforms(3, "sampling", 7, 16, 12))
    assert np.array_equal(wide[:1, :17], uniforms(3, "sampling", 7, 1, 17))


def test_interleaved_use_changes_nothing() -> None:
    first = uniforms(0, "prompts", 0, 4, 4)
    uniforms(0, "sampling", 5, 100, 30)
    np.random.default_rng(0).random(5)
    assert np.array_equal(first, uniforms(0, "prompts", 0, 4, 4))


@pytest.mark.parametrize("other", [(1, "sampling", 0), (0, "prompts", 0), (0, "sampling", 1)])
def test_other_keys_give_unrelated_streams(other: tuple[int, str, int]) -> None:
    here, there = uniforms(0, "sampling", 0, 64, 64).ravel(), uniforms(*other, 64, 64).ravel()
    assert not np.intersect1d(here, there).size
    assert abs(np.corrcoef(here, there)[0, 1]) < 5 / 64  # five standard errors


def test_rows_and_columns_never_repeat() -> None:
    assert np.unique(uniforms(0, "sampling", 0, 500, 100)).size == 500 * 100


def test_uniform_in_the_half_open_unit_interval() -> None:
    draws = uniforms(11, "sampling", 2, 1000, 100).ravel()
    assert draws.min() >= 0
    assert draws.max() < 1
    counts = np.histogram(draws, bins=20, range=(0, 1))[0]
    chi_squared = float(((counts - 5000) ** 2 / 5000).sum())
    assert chi_squared < 45  # 19 degrees of freedom: p < 0.001


def test_the_definition_of_the_stream_is_frozen() -> None:
    """Recorded results name streams by key only: these numbers may never change."""
    expected = [0.7737743295181221, 0.899044399562891, 0.6763373515689427, 0.003841869092544581]
    assert uniforms(1, "sampling", 2, 3, 18)[2, [0, 15, 16, 17]].tolist() == expected


def test_key_matches_numpys_own_philox() -> None:
    from hashlib import blake2b

    key = np.frombuffer(blake2b(b"1/sampling", digest_size=16).digest(), dtype="<u8")
    generator = np.random.Generator(np.random.Philox(key=key, counter=np.array([4 * 5, 1, 2, 0], dtype=np.uint64)))
    assert np.array_equal(uniforms(1, "sampling", 2, 6, 32)[5, 16:], generator.random(16))


def test_empty_shapes() -> None:
    assert uniforms(0, "x", 0, 0, 5).shape == (0, 5)
    assert uniforms(0, "x", 0, 5, 0).shape == (5, 0)


@pytest.mark.parametrize("arguments", [(-1, 0, 1, 1), (0, -1, 1, 1), (0, 0, -1, 1), (0, 0, 1, -1)])
def test_negative_keys_are_refused(arguments: tuple[int, int, int, int]) -> None:
    seed, batch, count, length = arguments
    with pytest.raises(ValueError, match="numbers >= 0"):
        uniforms(seed, "sampling", batch, count, length)
