"""A Tinker server in this process: the verbs of its client, on a table of logits for each token after each other one.

It does what the real one was seen to do: samples come from published weights, gradients add up until a step, AdamW
steps as that of PyTorch, states outlive clients.
"""

import copy
import itertools
import types as modules
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from typing import Any

import torch
from torch import Tensor

BASE = "models/qwen3"


@dataclass
class Answer:
    """A future that is done, or a call that fails."""

    value: Any

    def result(self, timeout: float | None = None) -> Any:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


@dataclass
class Later:
    """A future that is carried out when it is waited for: the real server may do first what is sent meanwhile."""

    work: Callable[[], Any]

    def result(self, timeout: float | None = None) -> Any:
        return self.work()


@dataclass
class Record:
    """Whatever has attributes: data types and answers of the client."""

    values: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(name) from None


def record(**values: Any) -> Record:
    return Record(values)


@dataclass
class FakeServer:
    """What outlives its clients.

    Attributes:
        vocabulary: Number of tokens.
        reduction: `mean` or `sum`.
        offered: Names of its base models.
        states: What was saved, by path.
        emptied: Paths of states that it says it loads, and does not: their files are gone.
        calls: Name of every verb, in order.
        opened: What the newest client and model were opened with.
        steps: Parameters of every step.
        change: Changes sequences before they are sent.
        broken: Name of a verb to the error that it raises.
    """

    vocabulary: int
    reduction: str = "mean"
    offered: list[str] = field(default_factory=lambda: [BASE])
    states: dict[str, Any] = field(default_factory=dict)
    emptied: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    opened: dict[str, Any] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    broken: dict[str, Exception] = field(default_factory=dict)
    change: Callable[[list[Any]], list[Any]] = lambda sequences: sequences

    def module(self) -> modules.ModuleType:
        """What `import tinker` gives."""
        made = modules.ModuleType("tinker")
        made.__spec__ = ModuleSpec("tinker", None)
        names = ("TensorData", "Datum", "AdamParams", "SamplingParams")
        made.types = record(ModelInput=record(from_ints=list), **dict.fromkeys(names, record))  # type: ignore[attr-defined]
        made.ServiceClient = lambda **settings: Service(self, settings)  # type: ignore[attr-defined]
        return made

    def note(self, verb: str) -> None:
        self.calls.append(verb)
        if verb in self.broken:
            raise self.broken[verb]


class Service:
    def __init__(self, server: FakeServer, settings: dict[str, Any]) -> None:
        self.server = server
        server.opened = settings
        server.note("session")

    def get_server_capabilities(self) -> Any:
        return record(supported_models=[record(model_name=name) for name in self.server.offered])

    def create_lora_training_client(self, base_model: str, **settings: Any) -> Any:
        self.server.note("create")
        self.server.opened |= settings | {"base_model": base_model}
        return Training(self.server)


class Training:
    _numbers = itertools.count()

    def __init__(self, server: FakeServer) -> None:
        torch.manual_seed(0)
        self.server, self.model_id = server, f"model-{next(self._numbers)}"
        self.weights = torch.nn.Parameter(torch.randn(server.vocabulary, server.vocabulary))
        self.optimizer = torch.optim.AdamW([self.weights], lr=0.0)

    def forward(self, data: Sequence[Any], loss: str) -> Answer:
        self.server.note("forward")
        return Answer(self._outputs(data, loss)[0])

    def forward_backward(self, data: Sequence[Any], loss: str) -> Later:
        self.server.note("forward_backward")
        return Later(lambda: self._backward(data, loss))

    def _backward(self, data: Sequence[Any], loss: str) -> Record:
        found, losses = self._outputs(data, loss)
        total = sum(losses[1:], losses[0])
        (total / len(losses) if self.server.reduction == "mean" else total).backward()
        return found

    def _outputs(self, data: Sequence[Any], loss: str) -> tuple[Record, list[Tensor]]:
        assert loss == "importance_sampling"
        outputs, losses = [], []
        for one in data:
            inputs = {name: value.data for name, value in one.loss_fn_inputs.items()}
            assert {len(values) for values in inputs.values()} == {len(one.model_input)}
            logp = self.weights.log_softmax(1)[one.model_input, inputs["target_tokens"]]
            ratio = (logp - torch.tensor(inputs["logprobs"])).exp()
            terms = -ratio * torch.tensor(inputs["advantages"])
            losses.append(terms.mean() if self.server.reduction == "mean" else terms.sum())
            outputs.append({"logprobs": record(data=logp.tolist())})
        return record(loss_fn_outputs=outputs, metrics={}), losses

    def optim_step(self, asked: Record) -> Answer:
        self.server.note("optim_step")
        values = dict(asked.values)
        self.server.steps.append(values)
        group = self.optimizer.param_groups[0]
        group |= {"lr": values["learning_rate"], "betas": (values["beta1"], values["beta2"])}
        group |= {"eps": values["eps"], "weight_decay": values["weight_decay"]}
        assert self.weights.grad is not None
        norm = float(self.weights.grad.norm())
        self.optimizer.step()
        self.optimizer.zero_grad()
        return Answer(record(metrics={"fake/grad_norm": norm}))

    def save_weights_and_get_sampling_client(self) -> Any:
        self.server.note("publish")
        return Sampling(self.server, self.weights.detach().clone())

    def save_state(self, name: str) -> Answer:
        self.server.note("save_state")
        path = f"tinker://{self.model_id}/weights/{name}"
        self.server.states[path] = (self.weights.detach().clone(), copy.deepcopy(self.optimizer.state_dict()))
        return Answer(record(path=path))

    def load_state_with_optimizer(self, path: str) -> Answer:
        self.server.note("load")
        if path in self.server.emptied:
            return Answer(record(path=path))
        weights, optimizer = self.server.states[path]
        self.weights.data.copy_(weights)
        self.optimizer.load_state_dict(copy.deepcopy(optimizer))
        return Answer(record(path=path))


class Sampling:
    def __init__(self, server: FakeServer, weights: Tensor) -> None:
        self.server, self.weights = server, weights

    def sample(self, prompt: list[int], num_samples: int, sampling_params: Record) -> Answer:
        self.server.note("sample")
        drawn = [self._one(prompt[-1], sampling_params, number) for number in range(num_samples)]
        return Answer(record(sequences=self.server.change(drawn)))

    def _one(self, last: int, asked: Record, number: int) -> Record:
        generator = torch.Generator().manual_seed(asked.seed + number)
        tokens, logp = list[int](), list[float]()
        while len(tokens) < asked.max_tokens and not (tokens and tokens[-1] in (asked.stop or ())):
            row = self.weights[last].log_softmax(0)
            drawn = row.argmax() if asked.temperature == 0 else torch.multinomial(row.exp(), 1, generator=generator)
            last = int(drawn)
            tokens.append(last)
            logp.append(float(row[last]))
        return record(tokens=tokens, logprobs=logp)
