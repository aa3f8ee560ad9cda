"""Random expressions of every regime in the catalog, plug-ins included, drawn from the legal values of its options."""

from hypothesis import strategies as st

from vcpo_bench.bench.regimes import REGIMES, Regime
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.component import parameters
from vcpo_bench.naming.parameters import Parameter

_VALUES = ("0", "1", "2", "3", "7", "0.25", "1/3", "0.9", "12.5", "on", "off", "[0 2 1]", "[0]")


def _legal(parameter: Parameter) -> list[str]:
    """Some of the texts that an option takes."""
    found = []
    for text in (*parameter.words, *_VALUES):
        try:
            parameter.read(text)
        except ValueError:
            continue
        found.append(text)
    return found


@st.composite
def regimes(draw: st.DrawFn, name: str) -> Regime:
    """A regime of that name with some of its options given."""
    known = {key: _legal(option) for key, (_, option) in parameters(REGIMES.get(name)).items()}
    known = {key: texts for key, texts in known.items() if texts}
    chosen = draw(st.lists(st.sampled_from(sorted(known)), unique=True, max_size=4))
    text = ",".join(f"{key}={draw(st.sampled_from(known[key]))}" for key in chosen)
    try:
        return REGIMES.parse(f"{name}({text})")
    except UsageError:  # options that need one another, such as law=trace and its lags
        return REGIMES.parse(name)
