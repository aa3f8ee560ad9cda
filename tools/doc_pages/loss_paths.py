"""The table of methods in `docs/loss_paths.md`, from what the adapters themselves refuse."""

from collections.abc import Iterator

from doc_pages.marked import with_table
from vcpo_bench.adapters import prime_rl, skyrl, slime
from vcpo_bench.adapters.hook import Divisor, Hook
from vcpo_bench.adapters.hook_reasons import reasons_against
from vcpo_bench.methods import METHODS, method_names, parse_method, part_names

SUFFIX = {Divisor.TOKENS: "+token-mean", Divisor.ROWS: "+seq-mean-token-mean(empty=counted)"}
HOOKS = {"prime-rl": prime_rl.HOOK, "slime": slime.HOOK, "SkyRL": skyrl.HOOKS["token_mean"]}


def expressions() -> Iterator[str]:
    """Every method, then every part that makes none of its own, sets no aggregation and is not in force anyway."""
    yield from method_names()
    names = [name for name in part_names() if name not in method_names()]
    for name in names:
        if METHODS.kinds[name].slot != "aggregation" and parse_method(f"reinforce+{name}").extras:
            yield f"+{name}"


def support(text: str, hook: Hook) -> str:
    """`exact`, or the first reason why not, in a few words."""
    plain = f"reinforce{text}" if text.startswith("+") else text
    extras = [part.slot for part in parse_method(plain).extras]
    suffix = "" if text == "luspo" and hook.divisor is Divisor.ROWS else SUFFIX[hook.divisor]
    expression = plain if "aggregation" in extras else plain + suffix
    return next((f"no: {short(reason)}" for reason in reasons_against(parse_method(expression), hook)), "exact")


def short(reason: str) -> str:
    """A reason up to its first clause."""
    return reason.partition(",")[0].partition(":")[0].removeprefix("it ").strip()


def table() -> str:
    """One row per method and part."""
    lines = [f"| method or part | {' | '.join(HOOKS)} |", f"|---|{'---|' * len(HOOKS)}"]
    for text in expressions():
        cells = [support(text, hook) for hook in HOOKS.values()]
        lines.append(f"| `{text}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The whole page."""
    return with_table("docs/loss_paths.md", table())
