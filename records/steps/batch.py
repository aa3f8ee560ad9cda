"""The consumed batch itself: how long its responses are, and whether its evidence could be used."""

from vcpo_bench.records.diagnostic import Diagnostic, Reported

COLUMNS = (
    Diagnostic(
        "length_mean",
        "tokens",
        "mean number of loss-carrying tokens of a consumed trajectory",
        lambda facts: float(facts.mask.sum(-1).mean()),
        label="response length (tokens)",
    ),
    Reported(
        "nonfinite", "field", "field of the evidence that was not finite (the step was skipped), or empty", kind="str"
    ),
)
