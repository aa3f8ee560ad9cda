"""What the page on the prefix chain reproduces, from its tables of published beside ours."""

from page_prose import BENCHMARKS, prose

PAGE = BENCHMARKS / "prefix_chain.md"
TEXT = prose(PAGE)
LAGS = (0, 100, 250, 500, 1000)
LINES = PAGE.read_text().splitlines()


def pairs(name: str, batch: str = "") -> list[tuple[float, float]]:
    """Published and ours, by column."""
    start = f"| {name} | {batch} |" if batch else f"| {name} |"
    section = LINES[LINES.index("## Horizon, K = 500 (ours: exact dynamics; published: B = 2048)") :]
    line = next(line for line in (LINES if batch else section) if line.startswith(start))
    cells = [cell.split("±")[0].split("/") for cell in line.removeprefix(start).strip("|").split("|")]
    return [(float(published), float(ours)) for published, ours in cells]


NAMES = ("Seq IS", "Token IS", "GeoMean IS")


def test_bias_at_large_batches() -> None:
    large = [pair for name in NAMES for pair in (*pairs(name, "inf"), *pairs(name))]
    assert "within 0.04 of the published values everywhere" in TEXT
    assert max(abs(ours - published) for published, ours in large) < 0.04
    published = [pairs("Token IS", "inf")[LAGS.index(lag)][0] for lag in (0, 500)]
    assert "token weights lose nearly half of their success by K = 500" in TEXT
    assert 0.4 < 1 - published[1] / published[0] < 0.5


def test_noise_at_small_batches() -> None:
    small, large = pairs("Seq IS", "8"), pairs("Seq IS", "inf")
    costs = [large[0][side] - small[0][side] for side in (0, 1)]
    assert "a batch of 8 costs sequence weights {:.2f} there and {:.2f} here".format(*costs) in TEXT
    assert f"({small[LAGS.index(500)][0]:.2f} at B = 8, K = 500)" in TEXT
    assert {f"{ours:.1f}" for _, ours in small} == {"0.7"}
    above = max(ours - published for name in NAMES[1:] for published, ours in pairs(name, "8"))
    assert f"at B = 8 are up to {above:.2f} above the published ones" in TEXT
