"""What a regime is: a named way to create policy lag, with options, that builds its own schedule."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from vcpo_bench.bench.regimes.base import CellShape, StalenessSchedule
from vcpo_bench.bench.regimes.service_times import TwoStations
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.component import Component
from vcpo_bench.naming.errors import ParameterError
from vcpo_bench.naming.parameters import Parameter, custom, flag, integer, number
from vcpo_bench.records import SYNCHRONOUS

ROUNDINGS = ("bf16", "bf16-fp32head", "fp16", "int8")
"""Precisions in which a sampler may hold the weights, as `engine_noise` names them."""
_WORDS = ("off", *ROUNDINGS)


def _read_noise(text: str) -> str:
    if text in _WORDS:
        return text
    sigma = float(text)
    if not 0 <= sigma < math.inf:
        raise ValueError("a standard deviation is finite and not negative")
    return f"{sigma:g}" if sigma else "off"


def _check_noise(value: Any) -> None:
    if not isinstance(value, str) or _read_noise(value) != value:
        raise ValueError(f"must be {', '.join(_WORDS)}, or a standard deviation written as text, such as '0.05'")


_NOISE = Parameter(
    " | ".join([*_WORDS, "a standard deviation in nats"]),
    _read_noise,
    str,
    _check_noise,
    "custom",
    _WORDS,
)


@dataclass(frozen=True, kw_only=True)
class Regime(Component, ABC):
    """A way to create policy lag. A regime is one file of this folder, or a plug-in.

    Callers ask it what it can do, and never compare its name.

    Class attributes:
        splits_responses: Whether the weights change while a response is generated: a sampler must stop at an exact
            token and go on later.
        whole_batches: Whether every order is a whole batch, so that cells can be sampled together (`bench.stack`).

    Attributes:
        publish_every: Updates between two publications of weights to the sampler; adds 0..publish_every-1 to the lag.
        engine_noise: How sampler and learner disagree under the same weights: `off`; `bf16`, `fp16` or `int8`: the
            sampler holds rounded weights; `bf16-fp32head`: rounded but for the output head; a number: it reports
            log-probabilities with Gaussian noise of this standard deviation, in nats per token.
        top_p: Probability mass that the sampler keeps of each distribution before it draws; 1: all. The
            log-probabilities it reports are those of what it drew from.
        top_k: Most likely tokens that it keeps; 0: all.
        mask_replay: The sampler records which tokens it kept, and the learner normalizes over the same tokens.
    """

    common: ClassVar[tuple[str, ...]] = (
        "publish_every",
        "engine_noise",
        "top_p",
        "top_k",
        "mask_replay",
    )
    splits_responses: ClassVar[bool] = False
    whole_batches: ClassVar[bool] = False

    publish_every: int = integer(1, minimum=1)
    engine_noise: str = custom("off", _NOISE)
    top_p: float = number(1.0, above=0.0, maximum=1.0, write="{:g}".format)
    top_k: int = integer(0, minimum=0)
    mask_replay: bool = flag(False)

    def __post_init__(self) -> None:
        """Refuse the replay of masks that nothing makes."""
        super().__post_init__()
        if self.mask_replay and not self.truncates:
            raise ParameterError(f"{self.name}: mask_replay=on has nothing to replay; add top_p= or top_k=")

    @property
    def truncates(self) -> bool:
        """Whether the sampler draws from a part of each distribution."""
        return self.top_p < 1 or self.top_k > 0

    @property
    def deterministic(self) -> bool:
        """Whether running a cell twice gives bit-identical results."""
        return True

    @property
    def needs_process(self) -> bool:
        """Whether the sampler works in a process of its own."""
        return False

    @property
    def keeps_cache(self) -> bool:
        """Whether a response goes on with the keys and values of the old weights when the weights change."""
        return True

    @property
    def service(self) -> TwoStations | None:
        """Speed of sampler and learner where both work at the same time; None where they take turns as planned."""
        return None

    @property
    def asynchronous(self) -> bool:
        """Whether sampler and learner work at the same time: the schedule is then an `AsyncSchedule`."""
        return self.service is not None

    def at(self, staleness: int) -> Regime:
        """The regime as it is at one lag: at lag 0 all are synchronous training, which has one name."""
        if staleness:
            return self
        return REGIMES.get(SYNCHRONOUS)(**{name: getattr(self, name) for name in Regime.common})

    def schedule(self, staleness: int, shape: CellShape) -> StalenessSchedule:
        """The schedule of a cell.

        Args:
            staleness: Largest lag k, in optimizer updates.
            shape: Sizes and seed of the cell.

        Raises:
            UsageError: The options do not fit the lag or the sizes, or what is built is no schedule.
        """
        made = self.at(staleness).build(staleness, shape)
        if not isinstance(made, StalenessSchedule):
            raise UsageError(f"regime {self.name}: build returned {type(made).__name__}, not a StalenessSchedule")
        return made

    @abstractmethod
    def build(self, staleness: int, shape: CellShape) -> StalenessSchedule:
        """What `schedule` returns for a lag of 1 or more; arguments and errors are the same."""


def short_number(default: float, *, minimum: float = 0.0, below: float = math.inf) -> Any:
    """A real option, written with six digits in expressions and cell keys."""
    return number(default, minimum=minimum, below=below, write="{:g}".format)


REGIMES = Catalog(
    "regime",
    Regime,  # type: ignore[type-abstract]  # the catalog makes objects of subclasses only
    ["vcpo_bench.bench.regimes"],
    template="vcpo_bench.bench.regimes.template",
)
"""Every regime that can be named."""
