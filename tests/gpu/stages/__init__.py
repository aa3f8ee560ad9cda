"""The stages: each a list of measurements, in the order in which they run. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Step:
    """A measurement.

    Attributes:
        name: Name of its file.
        entry: `module:function` that takes a `kit.Setup` and the arguments.
        seconds: Most seconds of one call; what takes longer is stopped, and what can continue does so in the next call.
            Tiny forms, which run on machines of any speed, have the whole call.
        arguments: See `entry`.
        timed: Whether it measures time, and so has the machine to itself; the others run beside each other, first.
    """

    name: str
    entry: str
    seconds: float
    arguments: dict[str, str | int] = field(default_factory=dict)
    timed: bool = True


def _check(name: str, entry: str, seconds: float) -> Step:
    return Step(name, entry, seconds, timed=False)


STAGES: dict[int, list[Step]] = {
    1: [
        Step("launches", "stages.launches:measure", 150),
        Step("update", "stages.tiny:measure", 60),
    ],
    2: [Step("readme", "stages.readme:train", 560)],
    3: [
        _check("equality", "stages.stack:equality", 90),
        Step("thousand", "stages.stack:thousand", 300),
        Step("cores", "stages.stack:cores_alone", 90),
        Step("diagram", "stages.stack:diagram", 330),
    ],
    4: [
        _check("updates", "stages.equality:updates", 180),
        _check("regimes", "stages.equality:regimes", 90),
        _check("sampler", "stages.equality:sampler", 60),
        _check("determinism", "stages.equality:determinism", 60),
        _check("clock", "stages.equality:clock", 60),
        _check("doctor", "stages.equality:doctor", 240),
    ],
    5: [Step("norms", "stages.norms:measure", 120)],
    6: [
        Step(f"estimate-{way}", "stages.estimate:measure", 150, {"way": way}) for way in ("whole", "recomputed", "lora")
    ],
    7: [Step("lag_16", "stages.study:train", 560, {"study": "smollm2-first", "grid": "lag_16", "makes": True})],
    8: [
        Step("together", "stages.together:measure", 150),
        Step("fused", "stages.launches:fused", 300),
    ],
    9: [
        Step(grid, "stages.study:train", 560, {"study": "small-llm", "grid": grid, "makes": False})
        for grid in ("choose", "choose_reinforce")
    ],
}
