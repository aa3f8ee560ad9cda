"""The gallery: a card for every method, with its coefficient drawn against the ratio."""

from html import escape

from vcpo_bench.methods import Curve, Description, coefficient_curve, describe, method_names

WIDTH, HEIGHT, LARGEST = 240, 120, 4.0

HEAD = """# Gallery of methods

Each picture is the gradient coefficient of a single token against its ratio, current over behavior policy, from e^-3 to
e^3 on a logarithmic axis: solid for advantage +1, dashed for -1. The vertical line is ratio 1, the horizontal line is
coefficient 0; coefficients beyond 4 are cut off. Methods that differ only in their baseline, or in what they do with a
whole batch, look alike here. Parameters, and where frameworks disagree, are in [All methods](methods.md).
"""


def page() -> str:
    """The gallery as Markdown."""
    cards = "\n".join(card(describe(name)) for name in method_names())
    return f'{HEAD}\n<div class="methods" markdown="1">\n\n{cards}\n</div>\n'


def card(facts: Description) -> str:
    """One method."""
    year = f" ({facts.year})" if facts.year and str(facts.year) not in facts.reference else ""
    lines = [
        '<div class="method" markdown="1">',
        "",
        f"### [{facts.name}](methods.md#{facts.name}) {{ #card-{facts.name} }}",
        "",
        drawing(coefficient_curve(facts.expression), facts.name),
        "",
        f"{facts.summary[:1].upper()}{facts.summary[1:].removesuffix('.')}.",
        "",
        f"`{facts.formula}`",
        "",
        f'<p class="paper">{escape(facts.reference)}{year} · acts on {escape(facts.acts_on)}</p>',
        "",
        "</div>",
        "",
    ]
    return "\n".join(lines)


def drawing(curve: Curve, name: str) -> str:
    """The curve as an SVG image on one line, in the colors of the page."""
    top = min(LARGEST, max(1.0, *map(abs, curve.positive), *map(abs, curve.negative)))
    middle = f'<path class="axis" d="M0 {HEIGHT / 2} H{WIDTH} M{WIDTH / 2} 0 V{HEIGHT}"/>'
    lines = "".join(
        f'<polyline class="{kind}" points="{points(curve.log_ratio, values, top)}"/>'
        for kind, values in (("positive", curve.positive), ("negative", curve.negative))
    )
    label = f"Coefficient of {name} against the ratio, up to {top:.2g}"
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{middle}{lines}</svg>'


def points(log_ratio: list[float], values: list[float], top: float) -> str:
    """Corners of a line, with values beyond `top` put on the edge."""
    low, high = log_ratio[0], log_ratio[-1]
    return " ".join(
        f"{(x - low) / (high - low) * WIDTH:.1f},{(1 - max(-top, min(top, y)) / top) * HEIGHT / 2:.1f}"
        for x, y in zip(log_ratio, values, strict=True)
    )
