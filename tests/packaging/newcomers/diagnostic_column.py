"""How many trajectories an update consumed."""

from vcpo_bench.records.diagnostic import Diagnostic

COLUMNS = (Diagnostic("newcomer", "count", "trajectories of the batch", lambda facts: float(len(facts.mask))),)
