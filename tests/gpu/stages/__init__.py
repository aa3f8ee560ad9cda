"""The four stages: each a table of measurements by name, in the order in which they run."""

from kit import Measure

from stages import equality, language, norms, stack

STAGES: dict[int, dict[str, Measure]] = {
    1: {
        "doctor": equality.doctor,
        "updates": equality.updates,
        "regimes": equality.regimes,
        "sampler": equality.sampler,
        "determinism": equality.determinism,
    },
    2: {"equality": stack.equality, "thousand": stack.thousand, "diagram": stack.diagram},
    3: {
        "exactness": norms.exactness,
        "norms-100M-512": norms.measure("100M", 512),
        "norms-100M-2048": norms.measure("100M", 2048),
        "norms-1B-512": norms.measure("1B", 512),
        "norms-1B-2048": norms.measure("1B", 2048),
    },
    4: {
        "sampling": language.sampling,
        "arithmetic-30M": language.train("30M", "arithmetic"),
        "countdown-100M": language.train("100M", "countdown(numbers=3)"),
    },
}
