"""How far the update went: gradient norms and the learning rate it was taken with."""

from vcpo_bench.records.diagnostic import Reported

COLUMNS = (
    Reported("grad_norm", "l2", "norm of the whole gradient before clipping", label="gradient norm", log_axis=True),
    Reported("grad_norm_clipped", "l2", "norm after clipping", label="clipped gradient norm"),
    Reported("step_scale", "factor", "the method's multiplier of the learning rate"),
    Reported("lr", "1", "learning rate of this step: base x step_scale", label="learning rate", log_axis=True),
)
