"""A vLLM server as the engine of a cell: token ids in and out over HTTP."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from torch import Tensor

from vcpo_bench.bench.samplers.engines.base import Segment
from vcpo_bench.bench.samplers.vllm_engine.http_client import Client, Refused, Unreachable
from vcpo_bench.bench.samplers.vllm_engine.messages import Answer, BrokenAnswer, Request, ask, check, fill, whole
from vcpo_bench.bench.samplers.vllm_engine.releases import OLDEST, counts_versions
from vcpo_bench.bench.samplers.vllm_engine.turns import converse_in_rounds, speakers
from vcpo_bench.bench.samplers.vllm_engine.weight_names import WeightNames
from vcpo_bench.bench.samplers.vllm_engine.weight_transfer import open_transfer
from vcpo_bench.bench.trajectories import Rollout
from vcpo_bench.errors import UsageError

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.hf.policy import CausalPolicy

PATIENCE_SECONDS = 120.0
"""A server that does not answer for longer counts as dead."""
MAX_ROUNDS = 4
"""Attempts at a request, the first included."""
CONNECTIONS = 64


class VllmOverHttp:
    """`samplers.engines.base.InflightEngine` on a server that somebody else started; it is not stopped at the end.

    Weights may be set while another thread generates: the server pauses as `pause` says, and every token is stamped
    with the version that drew it.

    Args:
        policy: The learner's policy.
        url: Address of the server.
        weights: How weights reach the server: `disk`, `ipc` or `nccl`.
        pause: What the server does with responses in flight when weights change: `wait`, `keep` or `abort`.
        patience: Seconds a server may be away before it counts as dead.
        seconds: Time limit for one response; None: `http_client.ANSWER_SECONDS`.

    Raises:
        UsageError: There is no server, or its settings make its log-probabilities differ from the policy's.

    Attributes:
        version: Updates seen by the weights pushed last.
        events: Failures that were recovered from, one line each.
    """

    def __init__(
        self,
        policy: CausalPolicy,
        url: str,
        weights: str,
        pause: str,
        patience: float = PATIENCE_SECONDS,
        seconds: float | None = None,
    ) -> None:
        if not url:
            raise UsageError(
                "--sampler vllm-server: give the server's address with --url, such as http://127.0.0.1:8000"
            )
        self.client = Client(url, seconds) if seconds else Client(url)
        self._policy, self._names, self._pause, self._patience = policy, WeightNames(policy), pause, patience
        self.version, self.events = 0, list[str]()
        self._run = uuid.uuid4().hex[:8]
        self._lock = threading.Lock()
        self._kept: list[tuple[str, Tensor]] = []  # the weights pushed last, for a server that restarts
        try:
            self._release = self.client.release()
            self._check_settings()
            self._transfer = open_transfer(weights, self.client, self._release)
        except (Unreachable, Refused, BrokenAnswer) as error:
            raise UsageError(
                f"--url {self.client.url}: no vLLM server that can be used ({error}); see docs/vllm.md"
            ) from None

    def _check_settings(self) -> None:
        """Refuse a server whose log-probabilities would belong to another distribution."""
        url = self.client.url
        if self._release < OLDEST:
            raise UsageError(f"--url {url}: vLLM {self._release} is too old; {OLDEST[0]}.{OLDEST[1]} or later")
        if self._pause == "keep" and not counts_versions(self._release):
            raise UsageError(
                f"--url {url}: this release does not report which weights drew a token; use pause=wait or pause=abort"
            )
        told = self.client.get("/server_info?config_format=json", 300.0)["vllm_config"]
        for name, needed in (("logprobs_mode", "processed_logprobs"), ("generation_config", "vllm")):
            if (found := told["model_config"].get(name)) != needed:
                flag = name.replace("_", "-")
                raise UsageError(f"--url {url}: the server's {name} is {found}; start it with --{flag} {needed}")
        if self._names.tied and str((told.get("device_config") or {}).get("device")).startswith("cpu"):
            raise UsageError(
                f"--url {url}: on a CPU vLLM does not take new weights for tied embeddings; save the model with "
                "tie_word_embeddings=False, or use --sampler vllm, which unties them"
            )
        if self.client.closed("/inference/v1/generate"):
            raise UsageError(f"--url {url}: the server takes no token ids; start it with --enable-scale-out")

    def set_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """See `samplers.engines.base.Engine`.

        Raises:
            RuntimeError: The server died, or did not take them.
        """
        self._kept = [(name, tensor.clone()) for name, tensor in self._names.checkpoint(weights)]
        self._push(version)

    def _push(self, version: int) -> None:
        with self._lock:
            for last in (False, True):
                try:
                    self._exchange(version)
                    return
                except (Unreachable, BrokenAnswer) as error:
                    if last:
                        raise RuntimeError(f"sampler_died: while weights were pushed: {error}") from error
                    self._wait_for(error)
                except Refused as error:
                    raise RuntimeError(f"sampler_push_failed: {error}") from error

    def _exchange(self, version: int) -> None:
        self.client.post("/pause", mode=self._pause, clear_cache="false")
        self._transfer.push(self._kept)
        self.client.post("/reset_prefix_cache")
        if counts_versions(self._release):
            self.client.post("/update_weight_version", {"new_version": str(version)})
        self.version = version
        self.client.post("/resume")

    def generate(self, prompts: Tensor, uniforms: Tensor, eos: int | None) -> Rollout:
        """See `samplers.engines.base.Engine`.

        Raises:
            RuntimeError: The server died or gave no usable answer; the text begins with the name of the event.
        """
        requests = ask(prompts, self._policy.real(prompts), uniforms, eos, range(uniforms.shape[1]))
        return whole(self._draw(list(requests.values())), uniforms.shape[1], eos)

    def advance(self, segments: Sequence[Segment], eos: int | None, keep: bool) -> None:
        """See `samplers.engines.base.InflightEngine`; a server cannot keep its cache between two calls."""
        assert not keep
        if any(segment.talk is not None for segment in segments):
            converse_in_rounds(self._draw, speakers(segments, self._policy.real, eos), lambda: self.version)
            return
        for segment in segments:
            drawn = segment.rollout if segment.positions.start else None
            asked = ask(
                segment.prompts, self._policy.real(segment.prompts), segment.uniforms, eos, segment.positions, drawn
            )
            for row, answer in zip(asked, self._draw(list(asked.values())), strict=True):
                fill(segment.rollout, row, segment.positions, answer, eos)

    def _draw(self, requests: Sequence[Request]) -> list[Answer]:
        """Answers in the order of the requests; a request that fails is repeated with the same seed."""
        found: dict[int, Answer] = {}
        failed: Exception | None = None
        for turn in range(MAX_ROUNDS):
            missing = [index for index in range(len(requests)) if index not in found]
            if not missing:
                break
            if turn:
                self._mend(failed)
            with ThreadPoolExecutor(CONNECTIONS) as pool:
                for index, result in zip(missing, pool.map(partial(self._try, requests), missing), strict=True):
                    if isinstance(result, Answer):
                        found[index] = result
                    else:
                        failed = result
        if len(found) < len(requests):
            raise RuntimeError(f"sampler_gave_no_answer: {MAX_ROUNDS} times, the last time: {failed}")
        return [found[index] for index in range(len(requests))]

    def _try(self, requests: Sequence[Request], index: int) -> Answer | Exception:
        try:
            return self._one(requests[index])
        except (Unreachable, BrokenAnswer) as error:
            return error
        except Refused as error:
            raise RuntimeError(f"sampler_refused: {error}") from error

    def _one(self, request: Request) -> Answer:
        """One response, joined from parts where weights changed during it with `pause=abort`."""
        tokens, logp, versions = list[int](), list[float](), list[int]()
        while True:
            rest = request._replace(
                prompt=request.prompt + tokens,
                length=request.length - len(tokens),
                seed=request.seed + len(tokens),
            )
            version = self.version
            answer, given_up = self.client.draw(rest, f"{self._run}-{version}")
            if answer.versions is None and version != self.version and not given_up:
                raise BrokenAnswer("weights changed under it, and this release does not say when")
            tokens, logp = tokens + answer.tokens, logp + answer.logp
            versions += [version] * len(answer.tokens) if answer.versions is None else answer.versions
            if not given_up or len(tokens) == request.length or request.eos in tokens:
                return check(request, Answer(tokens, logp, versions))

    def _mend(self, failed: Exception | None) -> None:
        """Push the present weights to a server that may have restarted."""
        self.events.append(f"sampler_answer_lost: {failed}")
        if isinstance(failed, Unreachable):
            self._wait_for(failed)
            self._push(self.version)

    def _wait_for(self, error: Exception) -> None:
        if not self.client.wait(self._patience):
            raise RuntimeError(f"sampler_died: {error}; away for more than {self._patience:g} s") from error

    def health(self) -> str:
        """Empty as soon as the server answers; the problem if it does not within the patience."""
        return "" if self.client.wait(self._patience) else f"sampler_died: {self.client.url} does not answer"

    def close(self) -> None:
        """Release files and connections."""
        self._transfer.close()
