"""The evidence of one optimizer step, as padded tensors of P prompts x G responses x T tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.errors import BatchError, missing_evidence
from vcpo_bench.methods.core.field_types import as_rows, as_tensor, check_count, check_number, check_state

ROW_AXES = (-2, -1)
"""Prompts and responses, the axes of a tensor with one number per row."""
BATCH_AXES = (-3, -2, -1)
"""Prompts, responses and tokens."""
POLICY_FIELDS = {
    "current": "logp",
    "behavior": "behavior_logp",
    "proximal": "proximal_logp",
    "reference": "reference_logp",
}
"""The policies that a ratio can name, and the field with their log-probabilities."""
_TOKEN_FLOATS = (
    "behavior_logp",
    "advantage",
    "proximal_logp",
    "reference_logp",
    "entropy",
    "sum_pi_sq",
)
_DISTRIBUTIONS = ("vocabulary_logp", "behavior_vocabulary_logp")
_ROW_FLOATS = ("reward", "score_norm_sq", "parameter_distance")
_ROW_FIELDS = (*_ROW_FLOATS, "void_turn")
_NEEDED = ("logp", "behavior_logp", "mask", "valid", "reward")
_TENSORS = tuple(
    dict.fromkeys((*_NEEDED, "version", *_TOKEN_FLOATS, *_DISTRIBUTIONS, *_ROW_FLOATS, "void_turn", "rows"))
)
LARGEST_REWARD = 1e12
"""Larger rewards and advantages are refused: their squares, or their products with weights, overflow in float32."""


def fields_of(*policies: str) -> frozenset[str]:
    """The optional fields of a batch that hold log-probabilities of these policies; other words count for nothing."""
    return frozenset(POLICY_FIELDS[name] for name in policies if name in ("proximal", "reference"))


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """What a method may know about one optimizer step. Leading axes `...` are independent runs.

    Tensors of a training loop are taken as they are: those with gradient history are detached, half precision becomes
    float32. That restores no digits: a log-probability of -10 in bfloat16 is known to 0.03.

    Attributes:
        logp: `[..., P, G, T]` log-probability of each token under the current policy.
        behavior_logp: `[..., P, G, T]` the same under the policy that sampled it, as its sampler reported it.
        mask: `[..., P, G, T]` bool, True where the policy generated a token that carries loss.
        valid: `[..., P, G]` bool, False for a padding slot. How a valid row with an empty mask counts
            in baselines is their parameter `empty`.
        reward: `[..., P, G]` one scalar per trajectory, at most `LARGEST_REWARD` in size, as is `advantage`.
        version: `[..., P, G, T]` int64, number of optimizer updates of the weights that sampled each token; None: not
            known, and methods that read it refuse the batch.
        now: Number of optimizer updates of the current weights: an int, or int64 of the leading shape.
        advantage: `[..., P, G, T]` optional; replaces the method's own baseline.
        proximal_logp: `[..., P, G, T]` under the policy at the first update on this batch.
        reference_logp: `[..., P, G, T]` under a frozen reference policy.
        entropy: `[..., P, G, T]` entropy of the current policy at each token, nats.
        sum_pi_sq: `[..., P, G, T]` sum over the vocabulary of squared probabilities.
        vocabulary_logp: `[..., P, G, T, V]` log-probability of every token of the vocabulary under the current policy.
        behavior_vocabulary_logp: `[..., P, G, T, V]` that of the same tokens under the policy that sampled.
        score_norm_sq: `[..., P, G]` squared norm of the gradient of the row's summed log-probability, 0 or more.
        parameter_distance: `[..., P, G]` l2 distance of the current weights from those that sampled the row's oldest
            token, trained parameters only.
        void_turn: `[..., P, G]` bool, True for an episode in which a turn was neither a finished call nor an answer.
        update_norm: l2 norm of the last change of the trained weights over its step scale: what it would have been at
            the full learning rate. 0 before the first. A number, or of the leading shape.
        state: Tensors the method returned in its last `Update`.
        rows: `[B]` int64 flat slot of each original row when made by `from_rows`.

    Raises:
        BatchError: Shapes or dtypes do not fit, or there is no prompt, response or token; the message names the field.
    """

    logp: Tensor
    behavior_logp: Tensor
    mask: Tensor
    valid: Tensor
    reward: Tensor
    version: Tensor | None
    now: int | Tensor
    advantage: Tensor | None = None
    proximal_logp: Tensor | None = None
    reference_logp: Tensor | None = None
    entropy: Tensor | None = None
    sum_pi_sq: Tensor | None = None
    vocabulary_logp: Tensor | None = None
    behavior_vocabulary_logp: Tensor | None = None
    score_norm_sq: Tensor | None = None
    parameter_distance: Tensor | None = None
    void_turn: Tensor | None = None
    update_norm: float | Tensor | None = None
    state: Mapping[str, Tensor] = field(default_factory=dict)
    rows: Tensor | None = None

    def __post_init__(self) -> None:
        for name in _TENSORS:
            if getattr(self, name) is not None or name in _NEEDED:
                as_tensor(name, getattr(self, name))
        check_count("now", self.now)
        check_number("update_norm", self.update_norm)
        check_state(self.state)
        for name in ("logp", *_TOKEN_FLOATS, *_DISTRIBUTIONS, *_ROW_FLOATS):
            object.__setattr__(self, name, _evidence(getattr(self, name)))
        shape = self.logp.shape
        if len(shape) < 3:
            raise BatchError(f"logp has shape {list(shape)}; it needs at least the three axes [P, G, T]")
        if 0 in shape:
            raise BatchError(f"logp has shape {list(shape)}; an update needs a prompt, a response and a token at least")
        if self.logp.dtype not in (torch.float32, torch.float64):
            raise BatchError(f"logp is {self.logp.dtype}; convert it to float32 or float64")
        self._check("mask", torch.Size(shape), "bool")
        self._check("valid", shape[:-1], "bool")
        self._check("void_turn", shape[:-1], "bool")
        self._check("version", torch.Size(shape), "integer")
        for name in _TOKEN_FLOATS:
            self._check(name, torch.Size(shape), "floating")
        for name in _DISTRIBUTIONS:
            value = getattr(self, name)
            self._check(name, torch.Size((*shape, 1 if value is None else value.shape[-1])), "floating")
        for name in _ROW_FLOATS:
            self._check(name, shape[:-1], "floating")
        for name in ("now", "update_norm"):
            value = getattr(self, name)
            if isinstance(value, torch.Tensor) and value.shape not in (shape[:-3], torch.Size(())):
                raise BatchError(f"{name} has shape {list(value.shape)}; expected the leading shape {list(shape[:-3])}")

    def _check(self, name: str, shape: torch.Size, kind: str) -> None:
        value: Tensor | None = getattr(self, name)
        if value is None:
            return
        if value.shape != shape:
            raise BatchError(f"{name} has shape {list(value.shape)}; expected {list(shape)} to match logp")
        dtype = value.dtype
        if kind == "bool":
            fits = dtype == torch.bool
        elif kind == "floating":
            fits = dtype.is_floating_point
        else:
            fits = dtype in (torch.int64, torch.int32)
        if not fits:
            raise BatchError(f"{name} is {dtype}; expected a tensor of type {kind}")
        if value.device != self.logp.device:
            raise BatchError(f"{name} is on {value.device} but logp is on {self.logp.device}")

    @property
    def leading(self) -> torch.Size:
        """The leading shape `...`: empty for one run."""
        return self.logp.shape[:-3]

    def lag(self) -> Tensor:
        """`[..., P, G]` int64: `now` minus the oldest version among the tokens of the row; 0 for empty rows.

        Raises:
            MissingEvidence: Versions are not known.
        """
        if self.version is None:
            raise missing_evidence("the lag of a row", ["version"])
        now = torch.as_tensor(self.now, device=self.version.device)
        now = now.reshape(*now.shape, 1, 1)
        newest = torch.iinfo(self.version.dtype).max
        oldest = torch.where(self.mask, self.version, newest).amin(-1)
        return torch.where(oldest < newest, now - oldest, 0)

    def with_state(self, state: Mapping[str, Tensor]) -> Batch:
        """The same evidence with the method's state of the previous update."""
        return replace(self, state=state)

    @classmethod
    def from_rows(
        cls,
        *,
        logp: Tensor,
        behavior_logp: Tensor,
        mask: Tensor,
        reward: Tensor,
        group: Tensor,
        version: Tensor | None = None,
        now: int | Tensor = 0,
        state: Mapping[str, Tensor] | None = None,
        update_norm: float | Tensor | None = None,
        **optional: Tensor | None,
    ) -> Batch:
        """Arrange rows into groups, padding ragged groups with invalid slots.

        Args:
            logp: `[B, T]`; so are `behavior_logp`, `mask`, `version` and the optional token fields.
            behavior_logp: See the class.
            mask: See the class; converted to bool.
            reward: `[B]`; so is `score_norm_sq` where given.
            group: `[B]` integer id of the prompt each row answers. Groups are in the order of their ids, rows of a
                group in their order of appearance.
            version: `[B, T]`; methods that read it (A-3PO, `max-lag`) refuse a batch without.
            now: See the class.
            state: See the class.
            update_norm: See the class.
            **optional: Any other tensor field of the class.

        Raises:
            BatchError: For an unknown field, rows that do not match, or anything that is no tensor where one belongs.
        """
        names = set(_TENSORS) - {*_NEEDED, "rows"}
        unknown = sorted(set(optional) - names)
        if unknown:
            raise BatchError(f"unknown field {unknown[0]!r}; besides its arguments it takes {', '.join(sorted(names))}")
        logp, group = as_tensor("logp", logp), as_tensor("group", group)
        check_count("group", group)
        check_count("now", now)
        if logp.dim() != 2 or group.shape != logp.shape[:1]:
            raise BatchError(f"logp must be [B, T] and group [B]; got {list(logp.shape)} and {list(group.shape)}")
        if 0 in logp.shape:
            raise BatchError(f"logp has shape {list(logp.shape)}; an update needs a row and a token at least")
        slots, prompts, width = _slots(as_rows("group", group, len(logp), logp))
        given = {
            "logp": logp,
            "behavior_logp": behavior_logp,
            "mask": mask,
            "reward": reward,
        }
        optional = {"version": version, **optional}
        given |= {name: value for name, value in optional.items() if value is not None}
        given = {name: as_rows(name, value, len(logp), logp).detach() for name, value in given.items()}
        for name, value in given.items():
            axes = 1 if name in _ROW_FIELDS else 2
            if value.shape[:2] != logp.shape[:axes] or value.dim() != axes + (name in _DISTRIBUTIONS):
                wanted = [*logp.shape[:axes], *["V"] * (name in _DISTRIBUTIONS)]
                raise BatchError(f"{name} has shape {list(value.shape)}; expected [{', '.join(map(str, wanted))}]")
        given["mask"] = given["mask"].bool()
        valid = torch.zeros(prompts * width, dtype=torch.bool, device=logp.device)
        valid[slots] = True
        padded = {name: _scatter(value, slots, prompts, width) for name, value in given.items()}
        whole = valid.reshape(prompts, width)
        return cls(
            version=padded.pop("version", None),
            **padded,
            valid=whole,
            now=now,
            state={} if state is None else state,
            update_norm=update_norm,
            rows=slots,
        )

    def place_of(self, row: Sequence[int]) -> str:
        """How messages name a row: by its number among those that `from_rows` was given, else by its indices."""
        if self.rows is not None and len(row) == 2:
            slot = row[0] * self.logp.shape[1] + row[1]
            return f"row {(self.rows == slot).nonzero().item()}"
        return f"row ({', '.join(map(str, row))})"

    def to_rows(self, tensor: Tensor) -> Tensor:
        """Undo `from_rows`: `[P, G, ...]` to `[B, ...]` in the original order of the rows.

        Raises:
            BatchError: The batch was not made by `from_rows`.
        """
        if self.rows is None:
            raise BatchError("to_rows needs a batch made by Batch.from_rows")
        return tensor.flatten(0, 1)[self.rows]


def _evidence(value: Tensor | None) -> Tensor | None:
    """Without gradient history, and float32 where it is half precision."""
    if value is None:
        return None
    return (value.float() if value.dtype in (torch.float16, torch.bfloat16) else value).detach()


def _slots(group: Tensor) -> tuple[Tensor, int, int]:
    """Flat slot of every row, number of groups, and the size of the largest group."""
    _, index, counts = torch.unique(group, return_inverse=True, return_counts=True)
    order = torch.argsort(index, stable=True)
    starts = torch.cumsum(counts, 0) - counts
    place = torch.empty_like(index)
    place[order] = torch.arange(len(index), device=group.device) - starts[index[order]]
    width = int(counts.max())
    return index * width + place, len(counts), width


def _scatter(value: Tensor, slots: Tensor, prompts: int, width: int) -> Tensor:
    padded = value.new_zeros((prompts * width, *value.shape[1:]))
    padded[slots] = value
    return padded.reshape(prompts, width, *value.shape[1:])
