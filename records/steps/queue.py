"""Groups on their way in an asynchronous run."""

from vcpo_bench.records.diagnostic import Reported

COLUMNS = (
    Reported("queued", "groups", "async: delivered and not consumed when this update begins", kind="int"),
    Reported("in_flight", "groups", "async: started or about to, and not delivered", kind="int"),
    Reported("dropped", "groups", "async: given up as too old since the update before", kind="int"),
    Reported("sampler_busy", "0..1", "async: share of the sampler's slots that worked since then"),
)
