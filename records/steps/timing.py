"""Where the time of an update goes. Times are not reproducible; every name begins with `seconds_`."""

from vcpo_bench.records.diagnostic import Reported

COLUMNS = (
    Reported("seconds_sample", "s", "sampling of the batch of this step", label="sampling"),
    Reported("seconds_score", "s", "forward passes of the learner", label="scoring"),
    Reported("seconds_update", "s", "coefficients, backward passes and optimizer", label="learning"),
    Reported("seconds_record", "s", "metrics and recording", label="recording"),
    Reported("seconds_wait", "s", "async: the learner waited for its batch", label="waiting"),
    Reported("seconds_in_flight", "s", "async: mean time from start to delivery of the consumed groups"),
    Reported("seconds_in_queue", "s", "async: mean time from delivery to this update"),
)

SPENT = tuple(f"seconds_{phase}" for phase in ("sample", "score", "update", "record", "wait"))
"""What an update waits for; `seconds_in_flight` and `seconds_in_queue` pass while others train."""
