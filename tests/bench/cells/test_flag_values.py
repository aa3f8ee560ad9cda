import pytest

from vcpo_bench.bench.cells import flag_values as options
from vcpo_bench.errors import UsageError


def test_commas_inside_brackets_do_not_separate() -> None:
    assert options.expressions("clip, clip(low=0.1,high=0.2),vcpo+ess(base=0.5),") == [
        "clip",
        "clip(low=0.1,high=0.2)",
        "vcpo+ess(base=0.5)",
    ]
    assert options.expressions(" , ") == options.expressions("") == []
    with pytest.raises(UsageError, match="clip,,tis"):
        options.expressions("clip,,tis")


def test_lists_are_read() -> None:
    assert options.lags("0, 16,128") == [0, 16, 128]
    assert options.seeds("3") == [0, 1, 2]
    assert options.seeds("7,") == [7]
    assert options.seeds("4,2") == [4, 2]
    assert options.rates("1e-4,3e-4") == [1e-4, 3e-4]
    assert options.every("every=50") == 50
    assert options.updates("0,3") == [0, 3]


def test_ranges_are_read() -> None:
    assert options.lags("0,1-4,16") == [0, 1, 2, 3, 4, 16]
    assert options.lags("1..64/7") == [1, 2, 4, 8, 16, 32, 64]
    assert options.lags("1..4/9") == [1, 2, 3, 4]  # rounded, each once
    assert options.rates("1e-4..1e-3/5") == [1e-4, 1.78e-4, 3.16e-4, 5.62e-4, 1e-3]
    assert options.rates("1e-4..3e-4/2,1e-3") == [1e-4, 3e-4, 1e-3]
    assert options.seeds("3-5") == [3, 4, 5]
    assert options.rates("1e-4") == [1e-4]  # a minus in an exponent is no range


@pytest.mark.parametrize("text", ["16-1", "0..8/3", "1..8/1", "1..8", "1-100000", "1..2/3/4", "1-"])
def test_a_range_that_makes_no_sense_is_named(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--staleness '" + text.replace(".", "[.]")):
        options.lags(text)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (options.lags, "-1"),
        (options.lags, "1.5"),
        (options.lags, "sixteen"),
        (options.lags, ","),
        (options.seeds, "0"),
        (options.seeds, "two"),
        (options.rates, "0"),
        (options.rates, "-1e-4"),
        (options.rates, "nan"),
        (options.rates, "inf"),
        (options.device, "tpu"),
        (options.device, "cuda:x"),
        (options.every, "50"),
        (options.every, "every=0"),
        (options.every, "every=\u00b2"),  # a superscript: a digit, but no number
        (options.every, "every=\u0663"),  # an Arabic three
        (options.device, "cuda:\u0663"),
    ],
)
def test_what_cannot_be_read_is_named_with_a_remedy(read, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(text)
    message = str(caught.value)
    assert message.startswith("--")
    assert text.strip(",") in message
    assert "\n" not in message


def test_a_slip_of_the_finger_in_the_count_of_seeds_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"^--seeds 100000000000: at most 10000 seeds in one grid"):
        options.seeds("100000000000")
    assert len(options.seeds("10000")) == 10000
    assert options.seeds("100000000000,") == [100000000000]
