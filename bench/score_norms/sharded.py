"""Score norms of a model whose parameters are spread over processes by FSDP2 (`fully_shard`)."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Partial, Shard

from vcpo_bench.bench.score_norms.collect import RecordedForward
from vcpo_bench.bench.score_norms.errors import InexactError
from vcpo_bench.bench.score_norms.norms import Kinds, ScoreNorms


class ShardedScoreNorms(ScoreNorms):
    """Exact score norms where every process holds some of the trajectories and a part of every parameter.

    Norms need no communication of their own: FSDP gathers a layer's parameters for the passes anyway, and a
    trajectory's norm is found where the trajectory is. Only `gradient` sums over processes.

    Layers are inspected, and `prove` checks them, while parameters are whole; `follow` then says what took their
    place. The checks of `ScoreNorms` are not repeated on sharded batches, where autograd never sees whole parameters.

    Args:
        model: The model, before it is sharded.

    Raises:
        InexactError: The model has a layer for which exact norms are impossible, or that needs its own parameters to
            compute them, which are not there once they are sharded.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self.suffice = True
        self._sharded = False
        named = sorted({type(rule.layer).__name__ for rule in self._fallbacks} | {one.name for one in self._loose})
        if named:
            raise InexactError(
                f"no score-norm rule for {', '.join(named)}, which sharded parameters need: use --shards 1"
            )

    def prove(self, logp_of: Callable[[], tuple[Tensor, Tensor]]) -> None:
        """Make the checks of a first batch while parameters are whole.

        Args:
            logp_of: Computes `[B, T]` log-probabilities and their mask on a small batch of several trajectories.

        Raises:
            InexactError: Trajectories influence each other, or the model needs one backward pass per trajectory.
        """
        with self.record():
            logp, mask = logp_of()
        self.squared_norms(logp, mask)
        self.release()
        if not self._batched:
            raise InexactError("this model takes one backward pass per trajectory, which needs whole parameters")
        self.suffice &= all(self._checked.values())

    def follow(self, replaced: Mapping[nn.Parameter, nn.Parameter]) -> None:
        """Name the sharded parameters that took the place of those that were inspected.

        Args:
            replaced: Sharded parameter by whole one.
        """
        for layer in self._tape.layers:
            layer.rule.parameters = [replaced[one] for one in layer.rule.parameters]
        self._owners = {replaced[one]: group for one, group in self._owners.items()}
        self._sharded = True

    @torch.no_grad()
    def gradient(self, weights: Tensor) -> dict[nn.Parameter, Tensor]:
        """See `ScoreNorms.gradient`: summed over the trajectories of all processes, and sharded like the parameters.

        Every process must call it.
        """
        return {
            parameter: _summed(gradient.to(parameter.dtype), parameter)
            for contribution in reversed(self.contributions())
            for parameter, gradient in contribution.weighted(weights).items()
        }

    def _trainable_parameters(self) -> list[object]:
        """Names: during a forward pass other objects take the place of the sharded parameters."""
        return [name for name, parameter in self._model.named_parameters() if parameter.requires_grad]

    def _check(self, recorded: RecordedForward) -> bool:
        return self.suffice if self._sharded else super()._check(recorded)

    def _check_first(self, recorded: RecordedForward) -> Kinds:
        if self._sharded:
            raise InexactError("trajectories could not be told apart in a batch of sharded parameters: use --shards 1")
        return super()._check_first(recorded)


def _summed(gradient: Tensor, parameter: nn.Parameter) -> Tensor:
    """The sum of a gradient over processes, each of which receives its shard of it, layer by layer."""
    assert isinstance(parameter, DTensor)
    mesh = parameter.device_mesh
    return DTensor.from_local(gradient.contiguous(), mesh, [Partial("sum")]).redistribute(mesh, [Shard(0)])
