"""The command `vcpo-bench`, also as `python -m vcpo_bench`. Signals are handled before anything else is imported."""

import signal


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until it is handled: Python's own way prints a traceback
    from vcpo_bench.interrupts import run_guarded

    run_guarded(_command_line)


def _command_line() -> None:
    from vcpo_bench.cli import main

    main()


if __name__ == "__main__":
    main()
