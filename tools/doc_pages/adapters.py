"""The tables of methods in `docs/trl.md` and `docs/verl.md`, from the one locality table."""

from collections.abc import Callable, Iterator

from doc_pages.marked import with_table
from vcpo_bench.adapters.hook_reasons import reasons_against
from vcpo_bench.adapters.locality import locality_of
from vcpo_bench.adapters.verl.policy_loss import HOOK
from vcpo_bench.methods import Method, method_names, parse_method, part_names
from vcpo_bench.methods.core.reach import Scope

SEES = {Scope.ROW: "the row", Scope.GROUP: "the prompt's rows", Scope.BATCH: "all rows"}


def expressions() -> Iterator[str]:
    """Every method, then every part that makes none of its own."""
    yield from method_names()
    yield from (f"+{name}" for name in part_names() if name not in method_names())


def in_trl(method: Method) -> str:
    """Whether it is exact in TRL, and under which conditions."""
    locality = locality_of(method)
    if locality.borrows is not None:
        return "refused: borrows the step scales of another run"
    if locality.measures_drift:
        return "refused: asks how far the weights have moved"
    if locality.counts_turns:
        return "refused: asks what the turns were"
    if locality.centers_scores:
        return "refused: asks for the sampler's whole distributions"
    conditions = {
        "`num_iterations` 2 or more": "proximal_logp" in locality.needs,
        "`beta` not 0": "reference_logp" in locality.needs,
        "whole weights, text": "score_norm_sq" in locality.needs,
        "not DeepSpeed": locality.scales_step,
        "DDP, not float16": locality.acts_on_gradient,
    }
    return "; ".join(["exact", *(words for words, holds in conditions.items() if holds)])


def in_verl(method: Method) -> str:
    """By which of the two ways it is exact in verl, and under which conditions."""
    locality = locality_of(method)
    refused = {
        "borrows the step scales of another run": locality.borrows is not None,
        "compares whole gradients": locality.acts_on_gradient,
        "asks how far the weights have moved": locality.measures_drift,
        "asks what the turns were": locality.counts_turns,
        "asks for the sampler's whole distributions": locality.centers_scores,
    }
    for words, holds in refused.items():
        if holds:
            return f"refused: {words}"
    conditions = {
        "2 updates per batch or more": "proximal_logp" in locality.needs,
        "`use_kl_loss`, coefficient 0": "reference_logp" in locality.needs,
        "no fused kernels": bool({"sum_pi_sq", "score_norm_sq"} & locality.needs),
        "FSDP2": "score_norm_sq" in locality.needs,
    }
    ways = "trainer" if any(reasons_against(method, HOOK)) else "loss mode or trainer"
    return "; ".join([ways, *(words for words, holds in conditions.items() if holds)])


def table(support: Callable[[Method], str]) -> str:
    """One row per method and part."""
    lines = [
        "| method or part | loss sees | advantage sees | step | further evidence | here |",
        "|---|---|---|---|---|---|",
    ]
    for text in expressions():
        method = parse_method(f"reinforce{text}" if text.startswith("+") else text)
        locality = locality_of(method)
        step = "scaled" if locality.scales_step else "its gradient" if locality.acts_on_gradient else ""
        further = sorted(locality.needs | locality.reads | locality.step_reads) + ["state"] * locality.state
        cells = (f"`{text}`", SEES[locality.loss], SEES[locality.baseline], step, ", ".join(further), support(method))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def trl_page() -> str:
    """`docs/trl.md`."""
    return with_table("docs/trl.md", table(in_trl))


def verl_page() -> str:
    """`docs/verl.md`."""
    return with_table("docs/verl.md", table(in_verl))
