"""The seven stages: each a list of measurements, in the order in which they run. Imports nothing heavy."""

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
        twin: Whether its tiny form is that of the measurement before, and left out.
        timed: Whether it measures time, and so has the machine to itself; the others run beside each other, first.
    """

    name: str
    entry: str
    seconds: float
    arguments: dict[str, str | int] = field(default_factory=dict)
    twin: bool = False
    timed: bool = True


def _check(name: str, entry: str, seconds: float) -> Step:
    return Step(name, entry, seconds, timed=False)


def _norms(size: str, tokens: int, twin: bool = True) -> Step:
    return Step(f"norms-{size}-{tokens}", "stages.norms:measure", 120, {"size": size, "tokens": tokens}, twin=twin)


def _training(size: str, task: str, twin: bool = True) -> Step:
    name = f"{task.partition('(')[0]}-{size}"
    return Step(name, "stages.language:train", 330, {"size": size, "task": task}, twin=twin)


def _launches(model: str, way: str, seconds: float, twin: bool = True) -> Step:
    arguments: dict[str, str | int] = {"model": model, "way": way}
    return Step(f"launches-{model}-{way}", "stages.launches:measure", seconds, arguments, twin)


STAGES: dict[int, list[Step]] = {
    1: [
        _launches("smollm2", "default", 420, twin=False),
        _launches("smollm2", "fused", 240, twin=False),
        _launches("smollm2", "off", 90),
        Step("tiny", "stages.tiny:measure", 60),
        Step("together", "stages.together:measure", 90, {"model": "smollm2"}),
        _launches("30M", "off", 60),
        _launches("30M", "default", 150),
    ],
    2: [Step("readme", "stages.readme:train", 520)],
    3: [
        _check("equality", "stages.stack:equality", 90),
        Step("sizes", "stages.stack:sizes", 120),
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
    5: [
        _check("exactness", "stages.norms:exactness", 60),
        _norms("135M", 60, twin=False),
        _norms("100M", 512, twin=False),
        _norms("100M", 2048),
        _norms("1B", 512),
        _norms("1B", 2048),
        *(
            Step(f"estimate-{way}", "stages.estimate:measure", 150, {"way": way})
            for way in ("whole", "recomputed", "lora")
        ),
    ],
    6: [
        *(Step(f"trl-{micro}", "stages.trl:gradients", 120, {"micro": micro}, timed=False) for micro in (1, 4)),
        Step("sampling", "stages.language:sampling", 120),
        _training("30M", "arithmetic", twin=False),
        _training("100M", "countdown(numbers=3)"),
    ],
    7: [
        Step(grid, "stages.study:train", 520, {"study": "smollm2-first", "grid": grid}, twin=grid != "synchronous")
        for grid in ("synchronous", "lag_16")
    ],
}
