"""vLLM in this process as the engine of a cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor

from vcpo_bench.bench.samplers.engines.base import Segment
from vcpo_bench.bench.samplers.vllm_engine.engine import LocalEngine, open_engine
from vcpo_bench.bench.samplers.vllm_engine.messages import Answer, Request, ask, check, fill, whole
from vcpo_bench.bench.samplers.vllm_engine.turns import converse, speakers
from vcpo_bench.bench.samplers.vllm_engine.weight_names import WeightNames
from vcpo_bench.bench.trajectories import Rollout

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.hf.policy import CausalPolicy


@dataclass
class _Flight:
    """A batch in the engine, by row.

    Attributes:
        first: Position of the first token the engine draws.
        requests: The requests.
        names: Their names in the engine.
        answers: The tokens drawn so far.
    """

    first: int
    requests: dict[int, Request]
    names: dict[int, str] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)


class VllmInProcess:
    """`samplers.engines.base.InflightEngine` on an engine in this process.

    Args:
        policy: The learner's policy.
        dtype: What the engine computes in: `float32` or `bfloat16`.
        prompt: Longest prompt in tokens.
        length: Longest response in tokens.
        rows: Responses in flight at once.
        memory: Size of its KV cache in GiB; 0: what `rows` responses need.

    Attributes:
        version: Updates seen by the weights pushed last.
    """

    def __init__(self, policy: CausalPolicy, dtype: str, prompt: int, length: int, rows: int, memory: float) -> None:
        self._policy, self._names, self.version = policy, WeightNames(policy), 0
        self.engine: LocalEngine = open_engine(policy.network.config, dtype, prompt, length, rows, memory)
        self._flights: dict[int, _Flight] = {}

    def set_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """See `samplers.engines.base.Engine`; responses in flight keep the KV cache of the old weights."""
        self.engine.push(self._names.checkpoint(weights), version)
        self.version = version

    def generate(self, prompts: Tensor, uniforms: Tensor, eos: int | None) -> Rollout:
        """See `samplers.engines.base.Engine`."""
        requests = ask(prompts, self._policy.real(prompts), uniforms, eos, range(uniforms.shape[1]))
        return whole(self.engine.draw(list(requests.values())), uniforms.shape[1], eos)

    def advance(self, segments: Sequence[Segment], eos: int | None, keep: bool) -> None:
        """See `samplers.engines.base.InflightEngine`."""
        if any(segment.talk is not None for segment in segments):
            converse(self.engine, speakers(segments, self._policy.real, eos), self.version)
        elif keep:
            self._step(segments, eos)
        else:
            self._again(segments, eos)

    def _again(self, segments: Sequence[Segment], eos: int | None) -> None:
        """Draw with prompt and tokens so far as new prompts: the present weights recompute the KV cache."""
        asked = [(s, row, request) for s in segments for row, request in self._ask(s, s.positions, eos).items()]
        for (segment, row, _), answer in zip(asked, self.engine.draw([request for *_, request in asked]), strict=True):
            fill(segment.rollout, row, segment.positions, answer, eos)

    def _step(self, segments: Sequence[Segment], eos: int | None) -> None:
        """The engine steps once per token. Whatever is in flight grows by one each time, so that what needs fewer
        tokens is let in later.
        """  # fmt: skip
        longest = max(len(segment.positions) for segment in segments)
        waiting = [segment for segment in segments if segment.batch not in self._flights]
        for left in range(longest, 0, -1):
            self._enter([segment for segment in waiting if len(segment.positions) == left], eos)
            drawn = self.engine.step()
            for flight in self._flights.values():
                found = {row: drawn[name] for row, name in flight.names.items() if name in drawn}
                flight.answers.update(found)
        for segment in segments:
            self._harvest(segment, eos)

    def _enter(self, segments: Sequence[Segment], eos: int | None) -> None:
        for segment in segments:
            first = segment.positions.start
            rest = range(first, segment.uniforms.shape[1])
            flight = _Flight(first, self._ask(segment, rest, eos))
            flight.names = dict(zip(flight.requests, self.engine.begin(list(flight.requests.values())), strict=True))
            self._flights[segment.batch] = flight

    def _harvest(self, segment: Segment, eos: int | None) -> None:
        """Copy the tokens of one segment into its rollout.

        Raises:
            RuntimeError: A response has not as many tokens as steps were taken: the engine had no room for all.
        """
        flight, positions = self._flights[segment.batch], segment.positions
        for row in flight.requests:
            if not bool(segment.rollout.mask[row, positions.start]):
                continue
            answer = flight.answers.get(row, Answer([], []))
            part = slice(positions.start - flight.first, positions.stop - flight.first)
            drawn = Answer(answer.tokens[part], answer.logp[part])
            if len(answer.tokens) > part.stop or len(drawn.tokens) not in (len(positions), _ended_at(drawn, eos)):
                raise RuntimeError(
                    f"sampler_out_of_step: {len(answer.tokens)} tokens of a response where {part.stop} were due; give "
                    "the engine more room with --sampler 'vllm(memory=GIB)'"
                )
            fill(segment.rollout, row, positions, drawn, eos)
        if positions.stop == segment.uniforms.shape[1]:
            for row, answer in self._flights.pop(segment.batch).answers.items():
                check(flight.requests[row], answer)

    def _ask(self, segment: Segment, positions: range, eos: int | None) -> dict[int, Request]:
        drawn = segment.rollout if positions.start else None
        return ask(segment.prompts, self._policy.real(segment.prompts), segment.uniforms, eos, positions, drawn)

    def health(self) -> str:
        """Nothing to report: an engine in this process dies with it."""
        return ""

    def close(self) -> None:
        """Abort what is in flight; the engine stays open for the next cell of this process."""
        for flight in self._flights.values():
            self.engine.abandon(flight.names.values())
        self._flights = {}


def _ended_at(answer: Answer, eos: int | None) -> int:
    """Tokens of a response that ended, else -1."""
    return len(answer.tokens) if answer.tokens and answer.tokens[-1] == eos else -1
