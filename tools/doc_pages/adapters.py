"""Which methods each trainer carries: the tables in `docs/trl.md`, `docs/verl.md` and `docs/loss_paths.md`."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from doc_pages.marked import with_table
from vcpo_bench.adapters import prime_rl, skyrl, slime
from vcpo_bench.adapters.hook import Divisor, Hook
from vcpo_bench.adapters.hook_reasons import reasons_against
from vcpo_bench.adapters.locality import locality_of
from vcpo_bench.adapters.verl.policy_loss import HOOK
from vcpo_bench.methods import METHODS, Method, method_names, parse_method, part_names

SUFFIX = {Divisor.TOKENS: "+token-mean", Divisor.ROWS: "+seq-mean-token-mean(empty=counted)"}
HOOKS = {"prime-rl": prime_rl.HOOK, "slime": slime.HOOK, "SkyRL": skyrl.HOOKS["token_mean"]}


def expressions() -> Iterator[str]:
    """Every method, then every part that makes none of its own."""
    yield from method_names()
    yield from (f"+{name}" for name in part_names() if name not in method_names())


def whole(text: str) -> str:
    """The expression of a method, or of a part added to a plain one."""
    return f"reinforce{text}" if text.startswith("+") else text


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


def in_hook(text: str, hook: Hook) -> str:
    """`exact`, or the first reason why not, up to its first clause."""
    extras = [part.slot for part in parse_method(whole(text)).extras]
    suffix = "" if text == "luspo" and hook.divisor is Divisor.ROWS else SUFFIX[hook.divisor]
    expression = whole(text) + ("" if "aggregation" in extras else suffix)
    reason = next(iter(reasons_against(parse_method(expression), hook)), "")
    return f"no: {reason.partition(',')[0].partition(':')[0].removeprefix('it ').strip()}" if reason else "exact"


def table(headings: Sequence[str], answers: dict[str, tuple[str, ...]]) -> str:
    """One row per answer with all that get it: what is refused last, and the most frequent before others."""
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for text, answer in answers.items():
        alike[answer].append(f"`{text}`")
    rows = sorted(alike.items(), key=lambda row: (sum(map(is_refusal, row[0])), -len(row[1]), row[0]))
    lines = [f"| {' | '.join(headings)} | methods and parts |", "|---" * (len(headings) + 1) + "|"]
    for (first, *others), names in rows:
        cells = [first, *("the same" if is_refusal(one) and one == first else one for one in others)]
        lines.append(f"| {' | '.join(cells)} | {', '.join(names)} |")
    return "\n".join([*lines, ""])


def is_refusal(answer: str) -> bool:
    """Whether something is not carried."""
    return answer.startswith(("no: ", "refused: "))


def trl_page() -> str:
    """`docs/trl.md`."""
    return with_table(
        "docs/trl.md", table(["in TRL"], {one: (in_trl(parse_method(whole(one))),) for one in expressions()})
    )


def verl_page() -> str:
    """`docs/verl.md`."""
    return with_table(
        "docs/verl.md", table(["by"], {one: (in_verl(parse_method(whole(one))),) for one in expressions()})
    )


def loss_paths_page() -> str:
    """`docs/loss_paths.md`: without parts that set the aggregation, or that are in force anyway."""
    tried = [
        one
        for one in expressions()
        if not one.startswith("+") or (METHODS.kinds[one[1:]].slot != "aggregation" and parse_method(whole(one)).extras)
    ]
    return with_table(
        "docs/loss_paths.md",
        table([*HOOKS], {one: tuple(in_hook(one, hook) for hook in HOOKS.values()) for one in tried}),
    )
