"""How far two numbers of the methods tests may differ, and why.

Where a test gives no tolerance (`pytest.approx(x)`, 1e-6; `torch.allclose(a, b)`, 1e-5) it compares float64 with a
number worked out by hand from a handful of terms: rounding is below 1e-14, and a wrong formula is off by percents.
"""

ROUNDING = {"rtol": 1e-9, "atol": 1e-12}
"""The same float64 arithmetic in another order: sums over at most 144 tokens of terms below e^10 round by 1e-13 of the
largest, and a ratio of two of them, or the difference to a mean, loses three digits more."""

SINGLE = {"rtol": 1e-4, "atol": 1e-6}
"""float32 against float64: a row's log-ratio of up to 10 nats is known to 1e-6, so is its exponential relative to
itself; baselines and normalized weights divide by sums of a few such numbers, which may cancel to a hundredth."""
